// Package protocol talks to a lock client in any language. docs/protocol.md specifies the protocol.
package protocol

import (
	"bytes"
	"encoding/json"
)

// Version is the version of the protocol that this package implements.
const Version = 1

// Op is an operation that a client is asked to perform.
type Op string

// The operations. Hello comes first, and only once.
const (
	Hello   Op = "hello"
	Acquire Op = "acquire"
	Renew   Op = "renew"
	Release Op = "release"
	Holds   Op = "holds"
	Work    Op = "work"
	Cancel  Op = "cancel" // has no answer of its own
)

// Server is a server that the client should use.
type Server struct {
	Name string `json:"name"` // "n1"…
	// Host and Port, or Socket, the path of a Unix socket, for an embedded server.
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	Socket string `json:"socket,omitempty"`
}

// Request is a line to the client. MarshalJSON lists the fields for each Op. All times are in ms.
type Request struct {
	ID int64
	Op Op

	Worker    string
	Servers   []Server
	Folder    string // shared by all workers
	TimeoutMS int64

	Key, Attempt string
	Token        uint64 // of the grant; 0 for none
	TTLMS        int64
	WaitMS       int64
	Shared       bool  // acquire: shared mode, as a reader
	MS           int64 // work: its duration
	Of           int64 // cancel: the ID of the acquire

	// Unknown adds a field that no version has, as a later version might.
	Unknown bool
}

// MarshalJSON writes all fields of the operation, including zero ones, so that a client need not check whether
// they exist.
func (r Request) MarshalJSON() ([]byte, error) {
	text, err := r.known()
	if err == nil && r.Unknown {
		text = append(bytes.TrimSuffix(text, []byte("}")), `,"of_a_later_version":{"is":["ignored"]}}`...)
	}
	return text, err
}

// known returns the fields of the operation.
func (r Request) known() ([]byte, error) {
	type grant struct {
		ID      int64  `json:"id"`
		Op      Op     `json:"op"`
		Key     string `json:"key"`
		Attempt string `json:"attempt"`
	}
	about := grant{r.ID, r.Op, r.Key, r.Attempt}
	switch r.Op {
	case Hello:
		return json.Marshal(struct {
			ID        int64    `json:"id"`
			Op        Op       `json:"op"`
			Protocol  int      `json:"protocol"`
			Worker    string   `json:"worker"`
			Servers   []Server `json:"servers"`
			Folder    string   `json:"folder"`
			TTLMS     int64    `json:"ttl_ms"`
			TimeoutMS int64    `json:"timeout_ms"`
		}{r.ID, r.Op, Version, r.Worker, r.Servers, r.Folder, r.TTLMS, r.TimeoutMS})
	case Acquire:
		return json.Marshal(struct {
			grant
			TTLMS  int64 `json:"ttl_ms"`
			WaitMS int64 `json:"wait_ms"`
			Shared bool  `json:"shared"`
		}{about, r.TTLMS, r.WaitMS, r.Shared})
	case Renew:
		return json.Marshal(struct {
			grant
			Token uint64 `json:"token"`
			TTLMS int64  `json:"ttl_ms"`
		}{about, r.Token, r.TTLMS})
	case Work:
		return json.Marshal(struct {
			grant
			MS int64 `json:"ms"`
		}{about, r.MS})
	case Cancel:
		return json.Marshal(struct {
			ID int64 `json:"id"`
			Op Op    `json:"op"`
			Of int64 `json:"of"`
		}{r.ID, r.Op, r.Of})
	default:
		return json.Marshal(struct {
			grant
			Token uint64 `json:"token"`
		}{about, r.Token})
	}
}

// Line is a line from the client: an answer or an event. An answer has an ID and exactly one of OK, Busy,
// NotHeld and Error. Unknown fields are ignored.
type Line struct {
	ID      int64     `json:"id"`
	OK      *Done     `json:"ok"`
	Busy    *Busy     `json:"busy"`
	NotHeld *struct{} `json:"not_held"`
	Error   *Failure  `json:"error"`

	Event   string `json:"event"`
	Attempt string `json:"attempt"`
	Text    string `json:"text"`
}

// Lost is the event that the lock of an attempt was lost.
const Lost = "lost"

// Done is the result of an operation that took effect.
type Done struct {
	// Answers to hello.
	Protocol int    `json:"protocol"`
	Client   string `json:"client"` // name and version of the library
	Now      int64  `json:"now"`    // CLOCK_MONOTONIC in ns

	Token uint64 `json:"token"` // fencing token of a grant; 0 for none
	// Until is the end of the validity, in ns of CLOCK_MONOTONIC. If it is 0, the parent counts the lease from
	// the sending of the request.
	Until int64 `json:"until"`
	Holds *bool `json:"holds"`
}

// Busy says that another client holds the lock.
type Busy struct {
	Holder string `json:"holder"` // the holder's attempt; "" if the service does not name it
}

// Failure says why an operation failed, and whether it may have had an effect.
type Failure struct {
	Effect string `json:"effect"` // NoEffect; any other value means that the effect is unknown
	Text   string `json:"text"`
}

// NoEffect is the Effect of a failure that certainly left nothing behind.
const NoEffect = "none"

// answers counts the results in a line; any number except one is a mistake.
func (l Line) answers() (n int) {
	for _, has := range []bool{l.OK != nil, l.Busy != nil, l.NotHeld != nil, l.Error != nil} {
		if has {
			n++
		}
	}
	return n
}
