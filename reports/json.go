package reports

import (
	"encoding/json"
	"fmt"
	"io"

	"lockcheck/checker"
	"lockcheck/history"
)

// DocumentSchema is the version of the format of results.json. It changes when readers of the file must
// change. New fields do not change it.
const DocumentSchema = 3

// Document is the content of results.json.
type Document struct {
	Schema  int             `json:"schema"` // DocumentSchema
	Header  history.Header  `json:"header"`
	Results checker.Results `json:"results"`
	// Remedies lists what can be done about the causes of violations; nil in documents of earlier versions.
	Remedies []RemedyAdvice `json:"remedies,omitempty"`
}

// ReadDocument reads results.json of all schemas so far. An unknown schema is an error.
func ReadDocument(r io.Reader) (Document, error) {
	var d struct {
		Document
		Results json.RawMessage `json:"results"`
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return d.Document, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d.Document, err
	}
	switch d.Schema {
	case 1:
		d.Schema = DocumentSchema
		d.Document.Results, err = checker.ResultsOfSchema1(d.Results)
	case 2, DocumentSchema:
		d.Schema = DocumentSchema
		err = json.Unmarshal(d.Results, &d.Document.Results)
		d.Document.Results.Schema = checker.Schema
	default:
		err = fmt.Errorf("they have schema %d, and this lockcheck knows %d", d.Schema, DocumentSchema)
	}
	return d.Document, err
}

// JSON writes results.json: a Document, indented. Times are in ns of the history's clock. Holds are left out,
// because the history has them.
func JSON(w io.Writer, h history.Header, r checker.Results) error {
	if err := WriteJSON(w, Document{DocumentSchema, h, r, adviceFor(h, r)}); err != nil {
		return fmt.Errorf("results as JSON: %w", err)
	}
	return nil
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
