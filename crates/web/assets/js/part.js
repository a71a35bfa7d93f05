// Reads one element of another page of this site.

// Trusted Types forbid DOMParser, which parses any string.
export function fetchPart(id, url) {
  return new Promise((done, fail) => {
    const request = Object.assign(new XMLHttpRequest(), { responseType: "document", onerror: fail });
    request.onload = () => {
      const part = request.response?.getElementById(id);
      if (part) done(document.adoptNode(part));
      else fail(new Error(`no ${id} in ${url}`));
    };
    request.open("GET", url);
    request.send();
  });
}
