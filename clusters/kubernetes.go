package clusters

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

const (
	kubernetesPort  = 6443
	kubernetesEtcds = 3
	// kubernetesTokens and kubernetesKey are files of an API server.
	kubernetesTokens = "tokens.csv"
	kubernetesKey    = "accounts.pem"
)

// kubernetesSpec is an etcd cluster with one or three Kubernetes API servers on it. Clients know the API
// servers only.
func kubernetesSpec() Spec {
	return Spec{
		Name: "kubernetes", Nodes: kubernetesEtcds + 1, Sizes: []int{kubernetesEtcds + 3},
		Image: "kube-apiserver", Versions: []string{"1.37.2"},
		Server: func(n int) Server {
			if n < kubernetesEtcds {
				return kubernetesEtcd()
			}
			return kubernetesServer()
		},
	}
}

func kubernetesEtcd() Server {
	server := etcdSpec().Server(0)
	server.Recipe, server.Hidden = etcdSpec().Recipe(""), true
	files := server.Files
	server.Files = func(p Place) map[string]string {
		p.IPs = p.IPs[:kubernetesEtcds]
		return files(p)
	}
	return server
}

func kubernetesServer() Server {
	return Server{
		Program: "kube-apiserver", Port: kubernetesPort, Probes: kubernetesProbes{}, Later: true,
		Command: kubernetesCommand, Files: kubernetesFiles,
		NoWipe: errNoState,
	}
}

// kubernetesCommand: everybody with the token may do everything.
func kubernetesCommand(p Place) []string {
	var etcds []string
	for _, ip := range p.IPs[:kubernetesEtcds] {
		etcds = append(etcds, fmt.Sprintf("http://%s:%d", ip, etcdPort))
	}
	key := p.Folder + "/" + kubernetesKey
	return []string{
		"kube-apiserver", "--etcd-servers", strings.Join(etcds, ","), "--advertise-address", p.IPs[p.N],
		"--secure-port", fmt.Sprint(kubernetesPort), "--cert-dir", p.Folder + "/certificates",
		"--token-auth-file", p.Folder + "/" + kubernetesTokens, "--authorization-mode", "AlwaysAllow",
		// Unused, but the server does not start without service accounts and service addresses.
		"--service-account-issuer", "https://lockcheck", "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-cluster-ip-range", "10.0.0.0/24",
	}
}

func kubernetesFiles(Place) map[string]string {
	return map[string]string{
		kubernetesTokens: clients.KubernetesToken + `,lockcheck,lockcheck,"system:masters"` + "\n",
		kubernetesKey:    newKey(),
	}
}

// newKey makes a private key, in PEM.
func newKey() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the operating system has no random numbers
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err) // never for a key on this curve
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// kubernetesProbes asks an API server over HTTPS, with the server's self-signed certificate.
type kubernetesProbes struct{}

var _ agent.Probes = kubernetesProbes{}

// Ready needs the namespace of the leases, which the first API server creates a moment after it is ready.
func (kubernetesProbes) Ready(ctx context.Context, address string) error {
	for _, path := range []string{"/readyz", "/api/v1/namespaces/" + clients.KubernetesNamespace} {
		if _, err := kubernetesAsks(address, path).ask(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func (kubernetesProbes) Clock(ctx context.Context, address string) (time.Time, error) {
	return kubernetesAsks(address, "/version").date(ctx)
}

func (kubernetesProbes) Version(ctx context.Context, address string) (string, error) {
	var answer struct {
		Version string `json:"gitVersion"`
	}
	_, err := kubernetesAsks(address, "/version").ask(ctx, &answer)
	return strings.TrimPrefix(answer.Version, "v"), err
}

func kubernetesAsks(address, path string) question {
	return question{
		url: "https://" + address + path, token: clients.KubernetesToken,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
	}
}
