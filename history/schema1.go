package history

import (
	"encoding/json"
	"time"
)

// Schema 1 says the same as schema 2 in other words. All that is known of them is here:
// what is read from such a file is of schema 2 for whoever uses this package.
const (
	schema1Phase    = "quiet"         // PhaseRecovery
	schema1Property = "no-dead-grant" // in Header.Require
	schema2Property = "no-expired-grant"
)

// schemaOf returns the version that a header says it has, 0 if it says none.
func schemaOf(header []byte) int {
	var h struct {
		Schema int `json:"schema"`
	}
	if json.Unmarshal(header, &h) != nil {
		return 0
	}
	return h.Schema
}

// UnmarshalJSON reads a header of any known schema, wherever it is stored.
func (h *Header) UnmarshalJSON(text []byte) error {
	type plain Header
	if err := json.Unmarshal(text, (*plain)(h)); err != nil || h.Schema != 1 {
		return err
	}
	var old struct {
		Slack time.Duration `json:"slack_ns"`
	}
	if err := json.Unmarshal(text, &old); err != nil {
		return err
	}
	h.Schema, h.Grace = 2, old.Slack
	for i, name := range h.Require {
		if name == schema1Property {
			h.Require[i] = schema2Property
		}
	}
	return nil
}

// slowSchema1 is what slow is for schema 2.
func slowSchema1(line []byte, e *Event) error {
	old := struct {
		*Event
		Dead    bool            `json:"dead"`
		Expired json.RawMessage `json:"expired"` // means nothing there
	}{Event: e}
	if err := slow(line, e, &old); err != nil {
		return err
	}
	e.Expired = old.Dead
	return nil
}

// fromSchema1 renames what the values of an event say.
func (e *Event) fromSchema1() {
	if e.F == Phase && e.Note == schema1Phase {
		e.Note = PhaseRecovery
	}
}
