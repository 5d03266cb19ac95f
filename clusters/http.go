package clusters

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// askHTTP makes one connection for one question of a probe. An answer other than 200 is an error.
func askHTTP(client *http.Client, request *http.Request) (http.Header, []byte, error) {
	request.Close = true
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	}
	return response.Header, body, nil
}

// dateOf returns the date of an answer. It has whole seconds: the middle of the
// second is at most half of one off.
func dateOf(header http.Header) (time.Time, error) {
	second, err := http.ParseTime(header.Get("Date"))
	return second.Add(500 * time.Millisecond), err
}
