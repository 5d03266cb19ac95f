//go:build !embedded

package clients

// EmbeddedOnly: the program has no client libraries, and so none of the locks on servers.
const EmbeddedOnly = false
