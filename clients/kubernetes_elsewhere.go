//go:build !kubernetes

package clients

import "errors"

// openKubernetes fails in every program but lockcheck-kubernetes: client-go is half of what there
// would be to compile before the first run, which needs none of it.
func openKubernetes(Config) (Lock, error) {
	return nil, errors.New("client-go is linked into lockcheck-kubernetes only (go build -tags kubernetes)")
}
