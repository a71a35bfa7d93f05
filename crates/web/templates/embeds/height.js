(function () {
  if (window.parent === window) return;
  var told = 0;
  function tell() {
    var height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (height === told) return;
    told = height;
    window.parent.postMessage({ type: "foretell:height", height: height }, "*");
  }
  if (window.ResizeObserver) new ResizeObserver(tell).observe(document.documentElement);
  window.addEventListener("load", tell);
  window.addEventListener("resize", tell);
})();
