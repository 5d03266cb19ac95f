//go:build !embedded

package clients

// EmbeddedOnly: the program has no client libraries, and so no locks that need servers.
const EmbeddedOnly = false
