(function () {
  "use strict";
  var stage = document.getElementById("stage"), range = document.getElementById("range");
  if (!stage) { return; }
  document.documentElement.classList.add("script");
  stage.tabIndex = 0;
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", "The whole run: plus and minus zoom, arrows move, 0 shows all of it");
  var pictures = Array.prototype.slice.call(stage.querySelectorAll("svg.timeline"));
  var from = +pictures[0].dataset.from, seconds = +pictures[0].dataset.seconds, zoom = 1, left = 0, drag = null;

  function make(parent, name, attributes, text) {
    var e = document.createElementNS(parent.namespaceURI, name);
    Object.keys(attributes).forEach(function (k) { e.setAttribute(k, attributes[k]); });
    if (text) { e.textContent = text; }
    parent.appendChild(e);
    return e;
  }
  // What stands for several, with the begin and end of each in seconds.
  var blocks = Array.prototype.map.call(stage.querySelectorAll("[data-parts]"), function (rect) {
    var at = +rect.dataset.begin, parts = [];
    rect.dataset.parts.split(" ").forEach(function (n, i) {
      at += parseInt(n, 36);
      if (i % 2 === 0) { parts.push({ from: at / 1e6, n: 1 }); } else { parts[parts.length - 1].to = at / 1e6; }
    });
    return { rect: rect, parts: parts, from: parts[0].from, to: Math.max.apply(null, parts.map(function (p) { return p.to; })) };
  });
  var refined = blocks.length ? make(pictures[0].querySelector(".plot"), "g", {}) : null;
  if (refined) { refined.parentNode.insertBefore(refined, refined.parentNode.querySelector(".inner")); }

  // Parts are merged only if less than two pixels are between them.
  function merged(parts, begin, end, gap) {
    var out = [], last = null;
    parts.forEach(function (p) {
      if (p.to < begin || p.from > end) { return; }
      if (last && p.from - last.to < gap) {
        last.to = Math.max(last.to, p.to);
        last.n++;
      } else {
        last = { from: p.from, to: p.to, n: 1 };
        out.push(last);
      }
    });
    return out;
  }
  function refine(begin, shown) {
    if (!refined) { return; }
    var plot = 0.88 * pictures[0].getBoundingClientRect().width, gap = 2 * shown / Math.max(plot, 1);
    refined.textContent = "";
    blocks.forEach(function (b) {
      var parted = zoom > 1 && b.from < begin + shown && b.to > begin;
      b.rect.style.display = parted ? "none" : "";
      if (!parted) { return; }
      merged(b.parts, begin, begin + shown, gap).forEach(function (p) {
        var from = Math.max(p.from, begin), to = Math.min(p.to, begin + shown);
        var rect = make(refined, "rect", {
          "class": p.n > 1 ? b.rect.getAttribute("class") : b.rect.classList[0],
          x: 100 * (from - begin) / shown + "%", width: 100 * (to - from) / shown + "%",
          y: b.rect.getAttribute("y"), height: b.rect.getAttribute("height")
        });
        make(rect, "title", {}, b.rect.dataset.each + (p.n > 1 ? " " + p.n + " times" : "") + " from " + p.from.toFixed(6) + " s to " + p.to.toFixed(6) + " s");
      });
    });
  }
  function showSpan(begin, length) {
    zoom = seconds / Math.max(length, 1e-6);
    left = (begin - from) / seconds;
    show();
  }
  document.querySelectorAll("a[data-from]").forEach(function (a) {
    a.addEventListener("click", function () { showSpan(+a.dataset.from, +a.dataset.seconds); });
  });
  function drawTicks(svg) {
    var ticks = svg.querySelector(".ticks"), axis = +svg.dataset.axis;
    var shown = seconds / zoom, step = Math.pow(10, Math.floor(Math.log10(shown / 4)));
    step *= shown / step / 5 >= 4 ? 5 : shown / step / 2 >= 4 ? 2 : 1;
    var places = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)), begin = from + left * seconds;
    ticks.textContent = "";
    for (var n = Math.ceil(begin / step - 1e-9); n * step <= begin + shown * 1.000001; n++) {
      var x = 100 * (n * step - from) / seconds, share = (n * step - begin) / shown;
      make(ticks, "line", { "class": "grid", x1: x + "%", x2: x + "%", y1: svg.dataset.top, y2: axis });
      make(ticks, "text", { x: x + "%", y: axis, dy: 19, "text-anchor": share < 0.03 ? "start" : share > 0.97 ? "end" : "middle" }, (n * step).toFixed(places) + " s");
    }
  }
  function show() {
    zoom = Math.min(Math.max(zoom, 1), 20000);
    left = Math.min(Math.max(left, 0), 1 - 1 / zoom);
    pictures.forEach(function (svg) {
      var inner = svg.querySelector(".inner");
      inner.setAttribute("width", 100 * zoom + "%");
      inner.setAttribute("x", -100 * left * zoom + "%");
      drawTicks(svg);
    });
    var begin = from + left * seconds;
    refine(begin, seconds / zoom);
    range.textContent = zoom === 1 ? "" : "Shown: " + begin.toFixed(3) + " s to " + (begin + seconds / zoom).toFixed(3) + " s.";
  }
  function scale(factor, share) {
    var before = left + share / zoom;
    zoom = Math.min(Math.max(zoom * factor, 1), 20000);
    left = before - share / zoom;
    show();
  }
  function act(what) {
    if (what === "in") { scale(2, 0.5); }
    if (what === "out") { scale(0.5, 0.5); }
    if (what === "left") { left -= 0.25 / zoom; show(); }
    if (what === "right") { left += 0.25 / zoom; show(); }
    if (what === "all") { zoom = 1; left = 0; show(); }
  }
  function shareAt(event) {
    var box = pictures[0].getBoundingClientRect();
    return ((event.clientX - box.left) / box.width - 0.11) / 0.88;
  }
  document.querySelectorAll("[data-do]").forEach(function (b) {
    b.addEventListener("click", function () { act(b.dataset.do); });
  });
  stage.addEventListener("keydown", function (event) {
    var what = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", "0": "all" }[event.key];
    if (what && !event.ctrlKey && !event.metaKey && !event.altKey) { act(what); event.preventDefault(); }
  });
  pictures.forEach(function (svg) {
    svg.addEventListener("wheel", function (event) {
      if (!event.ctrlKey && !event.metaKey) { return; }
      event.preventDefault();
      scale(Math.pow(1.002, -event.deltaY), Math.min(Math.max(shareAt(event), 0), 1));
    }, { passive: false });
    svg.addEventListener("pointerdown", function (event) { drag = { at: shareAt(event), left: left }; });
  });
  window.addEventListener("pointermove", function (event) {
    if (drag) { left = drag.left - (shareAt(event) - drag.at) / zoom; show(); }
  });
  ["pointerup", "pointercancel"].forEach(function (name) {
    window.addEventListener(name, function () { drag = null; });
  });
})();
