"""Whether an OpenAPI document still keeps what a released one promised.

    compatible.py RELEASED.json NEW.json    prints each promise that NEW breaks; exits 1 if there is one
    compatible.py --test                    checks this program on small documents

A client of the release must continue to work:

- No operation, parameter, response or response member disappears or changes its type.
- A request accepts the values that it accepted, and requires nothing new.
- A schema keeps its name, which generated clients give to their type.

Additions are allowed: clients ignore members, codes and values that they do not know.
"""

import json
import sys

METHODS = ("get", "put", "post", "delete", "patch")


class Documents:
    def __init__(self, released, new):
        self.released, self.new = released, new
        self.breaks = []
        self.seen = set()

    def say(self, place, what):
        self.breaks.append(f"{place}: {what}")

    @staticmethod
    def resolve(document, node):
        while isinstance(node, dict) and "$ref" in node:
            target = document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            node = target
        return node if isinstance(node, dict) else {}

    def compare(self):
        new_schemas = self.new.get("components", {}).get("schemas", {})
        for name in self.released.get("components", {}).get("schemas", {}):
            if name not in new_schemas:
                self.say(f"schema {name}", "is gone")
        for path, item in self.released.get("paths", {}).items():
            for method in METHODS:
                if method in item:
                    place = f"{method.upper()} {path}"
                    new = self.new.get("paths", {}).get(path, {}).get(method)
                    if new is None:
                        self.say(place, "is gone")
                    else:
                        self.operation(place, item[method], new)
        return self.breaks

    def operation(self, place, old, new):
        old_parameters, new_parameters = (
            {(p["in"], p["name"]): p for p in (self.resolve(d, p) for p in o.get("parameters", []))}
            for d, o in ((self.released, old), (self.new, new))
        )
        for key, parameter in old_parameters.items():
            at = f"{place} parameter {key[1]}"
            if key not in new_parameters:
                self.say(at, "is gone")
            else:
                self.schema(at, parameter.get("schema", {}), new_parameters[key].get("schema", {}), True)
        for key, parameter in new_parameters.items():
            was_required = old_parameters.get(key, {}).get("required", False)
            if parameter.get("required") and not was_required:
                self.say(f"{place} parameter {key[1]}", "is required now")
        old_body = self.resolve(self.released, old.get("requestBody", {}))
        new_body = self.resolve(self.new, new.get("requestBody", {}))
        if new_body.get("required") and not old_body.get("required"):
            self.say(f"{place} body", "is required now")
        self.content(f"{place} body", old_body, new_body, True)
        for status, response in old.get("responses", {}).items():
            at = f"{place} {status}"
            if status not in new.get("responses", {}):
                self.say(at, "is gone")
                continue
            response = self.resolve(self.released, response)
            of_new = self.resolve(self.new, new["responses"][status])
            for header in response.get("headers", {}):
                if header not in of_new.get("headers", {}):
                    self.say(f"{at} header {header}", "is gone")
            self.content(at, response, of_new, False)

    def content(self, place, old, new, is_request):
        for media, body in old.get("content", {}).items():
            if media not in new.get("content", {}):
                self.say(f"{place} {media}", "is gone")
                continue
            self.schema(place, body.get("schema", {}), new["content"][media].get("schema", {}), is_request)

    def schema(self, place, old, new, is_request):
        pair = (json.dumps(old, sort_keys=True), json.dumps(new, sort_keys=True), is_request)
        if pair in self.seen:
            return
        self.seen.add(pair)
        old, new = self.resolve(self.released, old), self.resolve(self.new, new)
        old_types, new_types = types(old), types(new)
        if old_types and new_types:
            # A request may be allowed more than before, an answer may be less.
            missing = old_types - new_types if is_request else new_types - old_types
            if missing:
                self.say(place, f"its type was {sorted(old_types)} and is {sorted(new_types)}")
        if is_request and "enum" in old and "enum" in new:
            for value in old["enum"]:
                if value not in new["enum"]:
                    self.say(place, f"{value!r} is no longer accepted")
        of_new = new.get("properties", {})
        for name, member in old.get("properties", {}).items():
            if name in of_new:
                self.schema(f"{place}.{name}", member, of_new[name], is_request)
            elif not is_request or new.get("additionalProperties") is False:
                self.say(f"{place}.{name}", "is gone")
        for name in new.get("required", []) if is_request else old.get("required", []):
            if is_request and name not in old.get("required", []):
                self.say(f"{place}.{name}", "is required now")
            if not is_request and name in of_new and name not in new.get("required", []):
                self.say(f"{place}.{name}", "may be absent now")
        if "items" in old and "items" in new:
            self.schema(f"{place}[]", old["items"], new["items"], is_request)
        for word in ("oneOf", "anyOf", "allOf"):
            for one, other in zip(old.get(word, []), new.get(word, [])):
                self.schema(place, one, other, is_request)


def types(schema):
    kind = schema.get("type", [])
    return set([kind] if isinstance(kind, str) else kind)


def compare(released, new):
    return Documents(released, new).compare()


def test():
    def document(member="string", required=("a",), statuses=("200",), parameter=None, accepted=("x", "y")):
        answer = {"type": "object", "properties": {"a": {"type": member}}, "required": list(required)}
        body = {"type": "object", "properties": {"side": {"enum": list(accepted)}}}
        operation = {
            "parameters": [parameter] if parameter else [],
            "requestBody": {"content": {"application/json": {"schema": body}}},
            "responses": {s: {"content": {"application/json": {"schema": {"$ref": "#/s"}}}} for s in statuses},
        }
        return {"paths": {"/p": {"post": operation}}, "s": answer}

    needed = {"in": "query", "name": "q", "required": True, "schema": {"type": "string"}}
    optional = {**needed, "required": False}
    cases = [
        (document(), document(), []),
        (document(), document(statuses=("200", "404")), []),
        (document(), document(accepted=("x", "y", "z"), parameter=optional), []),
        (document(), {"paths": {}}, ["POST /p: is gone"]),
        (document(), document(member="integer"), ["POST /p 200.a: its type was ['string'] and is ['integer']"]),
        (document(), document(required=()), ["POST /p 200.a: may be absent now"]),
        (document(statuses=("200", "404")), document(), ["POST /p 404: is gone"]),
        (document(), document(parameter=needed), ["POST /p parameter q: is required now"]),
        (document(), document(accepted=("x",)), ["POST /p body.side: 'y' is no longer accepted"]),
    ]
    for released, new, expected in cases:
        found = compare(released, new)
        assert found == expected, (found, expected)
    named = {"components": {"schemas": {"Event": {}}}}
    assert compare(named, {}) == ["schema Event: is gone"]


def main(arguments):
    test()
    if arguments == ["--test"]:
        return 0
    released, new = (json.load(open(path, encoding="utf-8")) for path in arguments)
    breaks = compare(released, new)
    for broken in breaks:
        print(broken, file=sys.stderr)
    return 1 if breaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
