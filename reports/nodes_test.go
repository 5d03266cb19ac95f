package reports

import (
	"strings"
	"testing"

	"maragu.dev/gomponents/html"
)

// TestHref: no address runs script, and addresses of pages stay unchanged.
func TestHref(t *testing.T) {
	for address, want := range map[string]string{
		"#incident-1": "#incident-1", "runs/a b/report.html": "runs/a%20b/report.html", "/files/javascript:x": "/files/javascript:x",
		"HTTPS://example.com/a:b": "HTTPS://example.com/a:b", "?a=b:c": "?a=b:c",
		"javascript:alert(1)": "#", "JavaScript:alert(1)": "#", " \x01java\nscript:alert(1)": "#", "data:text/html,x": "#", "vbscript:x": "#",
		`" onload="alert(1)`: `&#34;%20onload=&#34;alert(1)`,
	} {
		var b strings.Builder
		if err := html.A(Href(address)).Render(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != `<a href="`+want+`"></a>` {
			t.Errorf("%q became %s", address, got)
		}
	}
}
