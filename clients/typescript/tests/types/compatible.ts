// A program that was compiled with the types of a release (released.ts) compiles with those of today (generated.ts): it can
// read every answer that it knows, and send every request that it makes. check.sh compiles this file for each release.
import type { operations as Current } from "./generated.js";
import type { operations as Released } from "./released.js";

type Member<Part, Name> = Name extends keyof Part ? Part[Name] : "gone";
type Json<Part, Other> = Part extends { content: { "application/json": infer Body } } ? Body : Other;
type Sent<Operation, Other> = Operation extends { requestBody?: infer Body } ? Json<NonNullable<Body>, Other> : Other;

// None of these has the operations as a parameter: the compiler would compare them as a whole.
type ReleasedAnswers = {
  [Id in keyof Released]: { [Status in keyof Released[Id]["responses"]]: Json<Released[Id]["responses"][Status], unknown> };
};
type CurrentAnswers = {
  [Id in keyof Released]: { [Status in keyof Released[Id]["responses"]]: Json<Member<Member<Member<Current, Id>, "responses">, Status>, "gone"> };
};
type ReleasedRequests = {
  [Id in keyof Released]: { parameters: Released[Id]["parameters"]; body: Sent<Released[Id], undefined> };
};
type CurrentRequests = {
  [Id in keyof Released]: { parameters: Member<Member<Current, Id>, "parameters">; body: Sent<Member<Current, Id>, unknown> };
};

declare const answers: CurrentAnswers;
export const read: ReleasedAnswers = answers;

declare const requests: ReleasedRequests;
export const sent: CurrentRequests = requests;
