package resource

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lockcheck/history"
)

// keys matches keys that no client, shell or proxy rewrites in a URL.
var keys = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:-]{0,99}$`)

// ValidKey reports whether the resource accepts a key.
func ValidKey(key string) bool { return keys.MatchString(key) }

const keyRule = "a key has up to 100 letters, digits and any of . _ : -"

// Headers.
const (
	headerVersion = "Version"
	headerToken   = "Token"
)

// handler answers requests for /CLIENT/KEY.
type handler struct {
	clients []string
	store   *store
}

func newHandler(clients []string, s *store) *handler { return &handler{clients, s} }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := history.Now()
	a, err := h.parse(w, r)
	if err == nil && r.Context().Err() != nil {
		return // the client is dead; its request must not count as one of the replica's next process
	}
	var value []byte
	version := int64(-1)
	if err == nil {
		a.From = arrived
		value, version, err = h.store.apply(a, a.Client != history.Asker)
	}
	if version >= 0 {
		w.Header().Set(headerVersion, strconv.FormatInt(version, 10))
	}
	if version > 0 {
		w.Header().Set("ETag", `"`+strconv.FormatInt(version, 10)+`"`)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		http.Error(w, refused.reason, refused.status)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case a.F == history.Write:
		w.WriteHeader(http.StatusNoContent)
	case version == 0:
		http.Error(w, a.Key+" was never written", http.StatusNotFound)
	default:
		_, _ = w.Write(value) // fails if the client is gone
	}
}

// parse reads a request. An error other than a *refusal means that the request is malformed.
func (h *handler) parse(w http.ResponseWriter, r *http.Request) (a access, err error) {
	var rest string
	a.Client, rest, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	a.Key = rest
	asks := a.Client == history.Asker
	switch {
	case !asks && !slices.Contains(h.clients, a.Client):
		return a, refuse(http.StatusForbidden, "no client has this URL: use $%s/KEY", Variable)
	case !ValidKey(a.Key):
		return a, errors.New(keyRule)
	case r.URL.RawQuery != "":
		return a, errors.New("a request has no query")
	}
	if err := a.conditions(r.Header); err != nil {
		return a, err
	}
	switch r.Method {
	case http.MethodGet:
		a.F = history.Read
		if a.absent || a.Base != 0 || a.Note != "" {
			return a, errors.New("If-Match and If-None-Match go with PUT and POST")
		}
		return a, nil
	case http.MethodPut, http.MethodPost:
		if asks {
			return a, refuse(http.StatusForbidden, "commands of invariants may only read")
		}
		a.F = history.Write
		return a, a.body(w, r)
	}
	w.Header().Set("Allow", "GET, PUT, POST")
	return a, refuse(http.StatusMethodNotAllowed, "the methods are GET, PUT and POST")
}

// conditions reads the headers with the conditions of a request.
func (a *access) conditions(h http.Header) (err error) {
	if text := h.Get(headerToken); text != "" {
		if a.Token, err = strconv.ParseUint(text, 10, 64); err != nil || a.Token == 0 {
			return errors.New("a token is a whole number from 1 to 2^64-1")
		}
	}
	switch text := h.Get("If-None-Match"); text {
	case "":
	case "*":
		a.absent = true
	default:
		return errors.New("If-None-Match is * or missing")
	}
	text := h.Get("If-Match")
	switch {
	case text == "":
		return nil
	case a.absent:
		return errors.New("If-Match and If-None-Match exclude each other")
	case text == "*":
		a.Note = history.AnyVersion
		return nil
	}
	a.Base, err = strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
	if err != nil || a.Base < 0 {
		return errors.New(`If-Match is the version that was read, such as "3", or *`)
	}
	a.absent = a.Base == 0
	return nil
}

// body reads the new value of a PUT or the line of a POST.
func (a *access) body(w http.ResponseWriter, r *http.Request) (err error) {
	a.value, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxValue))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "a value has at most %d bytes", maxValue)
	case err != nil:
		return err
	case r.Method == http.MethodPut:
		return nil
	}
	a.ID = strings.TrimRight(string(a.value), "\r\n")
	if a.ID == "" || len(a.ID) > maxLine || strings.ContainsAny(a.ID, "\r\n") || !utf8.ValidString(a.ID) {
		a.ID = ""
		return errors.New("POST appends one line of up to 1024 bytes of UTF-8, which is not empty")
	}
	return nil
}
