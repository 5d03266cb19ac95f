(function () {
  "use strict";
  function key(row, column) {
    var cell = row.cells[column];
    if (!cell || cell.textContent.trim() === "") { return null; }
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  }
  function compare(a, b) { return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }); }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", function () {
        var up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        var rows = Array.from(table.tBodies[0].rows).map(function (row) { return { row: row, key: key(row, column) }; });
        rows.sort(function (a, b) {
          if (a.key === null || b.key === null) { return (a.key === null) - (b.key === null); } // without a figure: last
          return up ? compare(a.key, b.key) : compare(b.key, a.key);
        });
        rows.forEach(function (r) { table.tBodies[0].append(r.row); });
      });
    });
  });
}());
