package web

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// Content security policies. lockcheck's pages load only their style sheet, and reports in frames. Stored pages
// may have inline style, and reports also scripts. Stored pages get an origin of their own, which can read no
// other page and load nothing. A script can still navigate its page to another address. Only the policy of a
// surrounding page can forbid that, such as ours around two reports.
// policy of a page around it, such as ours around two reports, can forbid that.
const (
	pagePolicy   = "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts allow-downloads"
	stillPolicy  = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox"
	filePolicy   = "default-src 'none'; frame-ancestors 'none'; sandbox"
)

// guarded refuses requests that were not meant for this server, and adds strict headers to its answers.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		if !meant(r) {
			http.Error(w, "This is a page of the machine that it is on: ask for it as 127.0.0.1 or localhost, with the port that was printed.", http.StatusForbidden)
			return
		}
		header.Set("Cache-Control", "no-cache") // runs may be judged again
		next.ServeHTTP(w, r)
	})
}

// meant says whether a request names this machine and the port that it arrived at. A web site can point its own
// name to this machine's address (DNS rebinding), but the browser then sends that name.
func meant(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil { // without a port the scheme's default counts
		host, port = strings.Trim(r.Host, "[]"), "80"
	}
	if number, err := strconv.Atoi(port); err != nil || number != local.Port {
		return false
	}
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}
