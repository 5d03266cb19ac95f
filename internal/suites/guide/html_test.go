package guide

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage: whatever products a reader removes, the first row left is what the command line answers for the
// other products. Nothing else on the page recommends a lock.
func TestPage(t *testing.T) {
	e := known(t)
	var b strings.Builder
	if err := e.HTML(&b); err != nil {
		t.Fatal(err)
	}
	products, _ := Products()
	taken := [][]string{nil, products}
	for _, p := range products {
		taken = append(taken, []string{p})
		if hides := "body:has(#without-" + p + ":checked) .needs-" + p + " { display: none; }"; strings.Count(b.String(), hides) != 1 {
			t.Errorf("no style: %s", hides)
		}
	}
	for _, need := range Needs() {
		section := regexp.MustCompile(`(?s)<section class="need need-` + string(need) + `">.*?</section>`).FindString(b.String())
		rows := regexp.MustCompile(`<li class="needs-(\w+)"><h3>(.*?)</h3><dl>(.*?)</dl>`).FindAllStringSubmatch(section, -1)
		if rest := regexp.MustCompile(`(?s)<li class="needs-.*?</li>`).ReplaceAllString(section, ""); strings.Contains(rest, "Use ") {
			t.Errorf("%s: whatever is taken away, the page says %s", need, rest)
		}
		var of []string
		for _, row := range rows {
			if !slices.Contains(of, row[1]) {
				of = append(of, row[1])
			}
		}
		if says := "body:has(#without-" + strings.Join(of, ":checked):has(#without-") + ":checked) .need-" + string(need) + " .nothing { display: block; }"; !strings.Contains(b.String(), says) {
			t.Errorf("no style: %s", says)
		}
		for _, gone := range taken {
			q := Query{Need: need, Have: []string{noServers}}
			for _, p := range products {
				if !slices.Contains(gone, p) && (need != NeedInfra || (Query{Need: need}).hasProduct(p)) {
					q.Have = append(q.Have, p)
				}
			}
			d := e.Decide(q)
			left := slices.DeleteFunc(slices.Clone(rows), func(row []string) bool { return slices.Contains(gone, row[1]) })
			if len(left) != len(d.Choices) {
				t.Errorf("%s without %v: %d rows are left, %d choices", need, gone, len(left), len(d.Choices))
				continue
			}
			for i, c := range d.Choices {
				if !strings.HasPrefix(left[i][2], c.name()) {
					t.Errorf("%s without %v: %d is %s, want %s", need, gone, i+1, left[i][2], c.name())
				}
			}
		}
	}
}
