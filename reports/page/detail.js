(function () {
  "use strict";
  function titled(node) {
    for (; node && node.nodeType === 1 && !node.classList.contains("timeline"); node = node.parentNode) {
      var own = node.localName === "a" ? node.querySelector("title") : Array.prototype.find.call(node.children, function (c) { return c.localName === "title"; });
      if (own) { return own.textContent; }
    }
    return "";
  }
  document.querySelectorAll("svg.timeline").forEach(function (svg) {
    var detail = document.createElement("p");
    detail.className = "detail";
    detail.setAttribute("role", "status");
    (svg.closest(".wide") || svg).after(detail);
    ["click", "focusin"].forEach(function (name) {
      svg.addEventListener(name, function (event) { detail.textContent = titled(event.target); });
    });
  });
})();
