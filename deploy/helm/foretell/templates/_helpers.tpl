{{- define "foretell.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "foretell.selector" -}}
app.kubernetes.io/name: foretell
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "foretell.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "foretell.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "foretell.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "foretell.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "foretell.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- /* Each kind of process: its roles, and whether it has a file of secrets. */ -}}
{{- define "foretell.kinds" -}}
api: {roles: api, hasSecrets: true}
executor: {roles: executor, hasSecrets: true}
chain: {roles: "sync,upkeep", hasSecrets: false}
dispatcher: {roles: dispatcher, hasSecrets: true}
{{- end }}

{{- /* Rejects values that the schema cannot judge. */ -}}
{{- define "foretell.check" -}}
{{- $replicas := .Values.api.replicas -}}
{{- if .Values.api.autoscaling.enabled -}}
{{- $replicas = .Values.api.autoscaling.maxReplicas -}}
{{- if lt (int .Values.api.autoscaling.maxReplicas) (int .Values.api.autoscaling.minReplicas) -}}
{{- fail "api.autoscaling.maxReplicas must be at least minReplicas" -}}
{{- end -}}
{{- end -}}
{{- if and (gt (int $replicas) 1) (not .Values.redis.secret.name) -}}
{{- fail "redis.secret.name must be set if there can be several API processes: each of them would count requests by itself" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host must be set if the ingress is enabled" -}}
{{- end -}}
{{- end }}

{{- define "foretell.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
# The mounted secrets are readable for this group.
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "foretell.containerSecurity" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Environment of every process: the database, the nodes and the deployment. */ -}}
{{- define "foretell.env" -}}
- {name: FORETELL_ENVIRONMENT, value: {{ .Values.environment | quote }}}
- {name: FORETELL_DATA_DIR, value: /var/lib/foretell/data}
- {name: FORETELL_DATABASE_URL_FILE, value: /run/foretell/database/url}
- {name: FORETELL_RPC_URL_FILE, value: /run/foretell/nodes/urls}
- {name: FORETELL_CONTRACTS, value: /etc/foretell/contracts.json}
- {name: FORETELL_DEPLOYMENT, value: /etc/foretell/deployment.json}
{{- range $name, $value := .Values.settings }}
{{- if kindIs "slice" $value }}
{{- $value = join "," $value }}
{{- else if kindIs "float64" $value }}
{{- /* Numbers of YAML are floats here, and large ones would get an exponent. */ -}}
{{- $value = int64 $value }}
{{- end }}
- {name: FORETELL_{{ $name | upper | replace "-" "_" }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{- define "foretell.mounts" -}}
- {name: data, mountPath: /var/lib/foretell}
- {name: deployment, mountPath: /etc/foretell, readOnly: true}
- {name: database, mountPath: /run/foretell/database, readOnly: true}
- {name: nodes, mountPath: /run/foretell/nodes, readOnly: true}
{{- end }}

{{- /* A Secret's key as a file of the given name. */ -}}
{{- define "foretell.secretVolume" -}}
name: {{ .volume }}
secret:
  secretName: {{ .secret.name | quote }}
  defaultMode: 0440
  items: [{key: {{ .secret.key | quote }}, path: {{ .path }}}]
{{- end }}

{{- define "foretell.volumes" -}}
- name: data
  emptyDir: {sizeLimit: 64Mi}
- name: deployment
  configMap: {name: {{ .Values.deployment.configMap | quote }}}
- {{ include "foretell.secretVolume" (dict "volume" "database" "secret" .Values.database.secret "path" "url") | nindent 2 | trim }}
- {{ include "foretell.secretVolume" (dict "volume" "nodes" "secret" .Values.nodes.secret "path" "urls") | nindent 2 | trim }}
{{- end }}
