(function () {
  "use strict";
  var button = document.getElementById("copy"), line = document.getElementById("command");
  if (!button) { return; }
  document.documentElement.classList.add("script");
  function done(well) { document.getElementById("copied").textContent = well ? "copied" : "marked: copy it yourself"; }
  function mark() {
    getSelection().selectAllChildren(line);
    done(document.execCommand("copy"));
  }
  button.addEventListener("click", function () {
    if (!navigator.clipboard) { mark(); return; }
    navigator.clipboard.writeText(line.textContent).then(function () { done(true); }, mark);
  });
})();
