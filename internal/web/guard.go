package web

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// Policies for the content of pages. Ours load nothing but their style sheet, and
// reports in frames. Files that are pages have style of their own, and reports script,
// too; they get an origin of their own, from which no other page can be read and nothing
// loaded. A script can still lead the browser from its page to another address: only the
// policy of a page around it, such as ours around two reports, can forbid that.
const (
	pagePolicy   = "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts allow-downloads"
	stillPolicy  = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox"
	filePolicy   = "default-src 'none'; frame-ancestors 'none'; sandbox"
)

// guarded refuses requests that were not meant for this server, and tells browsers to
// be strict with its answers.
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
		header.Set("Cache-Control", "no-cache") // runs are judged again
		next.ServeHTTP(w, r)
	})
}

// meant says whether a request names this machine and the port that it came in by. A
// web site can give its own name the address of this machine (DNS rebinding), but the
// browser sends that name.
func meant(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil { // no port is that of the scheme
		host, port = strings.Trim(r.Host, "[]"), "80"
	}
	if number, err := strconv.Atoi(port); err != nil || number != local.Port {
		return false
	}
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}
