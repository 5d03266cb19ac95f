package ask

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 64 << 10

// request asks by GET. A response with a status of success is an answer: the lines of its body are the rows.
type request struct {
	*conns
	client *http.Client
	url    string
	// mayLack: 404 is an answer without rows.
	mayLack bool
}

func openRequest(q Question) (*request, error) {
	u, err := parseURL(q.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("a request needs a URL with http:// or https:// and a host")
	}
	network := newConns()
	return &request{conns: network, url: q.URL, mayLack: q.Kind == Resource, client: &http.Client{
		// A proxy of the environment would answer in place of the application.
		Transport: &http.Transport{DialContext: network.dial, MaxConnsPerHost: 1, MaxResponseHeaderBytes: maxHeader, DisableCompression: true},
		// Only the address in the app file is asked.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// parseURL parses a URL. Its error repeats nothing of the URL, which may have a password.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("the URL is malformed")
	}
	return u, nil
}

// withoutURL is an error of a request without the address, which the invariant has anyway.
func withoutURL(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}

func (r *request) ready(context.Context) error { return nil } // the client connects by itself

func (r *request) ask(ctx context.Context, a *answer) error {
	r.refill()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return withoutURL(err)
	}
	response, err := r.client.Do(get)
	if err != nil {
		return r.conns.bounded(withoutURL(err))
	}
	defer response.Body.Close()
	if r.mayLack && response.StatusCode == http.StatusNotFound {
		return nil
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("status %s", response.Status)
	}
	return a.bounded(r.conns.bounded(a.readLines(response.Body)))
}

func (r *request) settle(_ context.Context, failed bool) {
	if failed {
		r.client.CloseIdleConnections()
	}
}
