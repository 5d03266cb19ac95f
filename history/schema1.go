package history

import (
	"encoding/json"
	"time"
)

// Schema 1 has the content of schema 2 under other names. Only this file knows them: events of such a file
// are converted to schema 2 for all users of this package.
const (
	schema1Phase    = "quiet"         // PhaseRecovery
	schema1Property = "no-dead-grant" // in Header.Require
	schema2Property = "no-expired-grant"
)

// schemaOf returns the version that a header states, 0 if it states none.
func schemaOf(header []byte) int {
	var h struct {
		Schema int `json:"schema"`
	}
	if json.Unmarshal(header, &h) != nil {
		return 0
	}
	return h.Schema
}

// UnmarshalJSON reads a header of any known schema, in whichever file it is stored.
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

// slowSchema1 is slow for lines of schema 1.
func slowSchema1(line []byte, e *Event) error {
	old := struct {
		*Event
		Dead    bool            `json:"dead"`
		Expired json.RawMessage `json:"expired"` // hides Event.Expired, which schema 1 does not have
	}{Event: e}
	if err := slow(line, e, &old); err != nil {
		return err
	}
	e.Expired = old.Dead
	return nil
}

func (e *Event) fromSchema1() {
	if e.F == Phase && e.Note == schema1Phase {
		e.Note = PhaseRecovery
	}
}
