package clusters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// question is a probe's question over HTTP, on a new connection.
type question struct {
	method string // "" for GET
	url    string
	body   string
	token  string // of the caller; "" for none
	client *http.Client
}

// ask decodes the answer as JSON, unless answer is nil. A status other than 200 is an error, returned together
// with the header.
func (q question) ask(ctx context.Context, answer any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, q.method, q.url, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.Close = true
	if q.token != "" {
		request.Header.Set("Authorization", "Bearer "+q.token)
	}
	client := q.client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return response.Header, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	case answer == nil:
		return response.Header, nil
	}
	return response.Header, json.Unmarshal(body, answer)
}

// date returns the Date header of the answer. It has whole seconds, so the middle of the second is off by at
// most half a second.
func (q question) date(ctx context.Context) (time.Time, error) {
	header, err := q.ask(ctx, nil)
	if header == nil {
		return time.Time{}, err
	}
	second, err := http.ParseTime(header.Get("Date"))
	return second.Add(500 * time.Millisecond), err
}
