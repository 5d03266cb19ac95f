//go:build !kubernetes

package clients

import "errors"

// openKubernetes fails in every program except lockcheck-kubernetes. client-go would be half of everything to
// compile before the first run, and few runs need it.
func openKubernetes(Config) (Lock, error) {
	return nil, errors.New("client-go is linked into lockcheck-kubernetes only (go build -tags kubernetes)")
}
