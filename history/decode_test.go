package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// typical is what most lines of a history look like.
var typical = []string{
	`{"index":12345,"time":817263544127,"process":"w3","type":"invoke","f":"acquire","key":"k12","op":4711,"grant":"w3-911"}`,
	`{"index":12346,"time":817263944127,"process":"w3","type":"ok","f":"acquire","key":"k12","op":4711,"grant":"w3-911","token":88,"until":817264544127}`,
	`{"index":12346,"time":817263944126,"process":"harness","type":"info","f":"stalled","from":817263844126}`,
	`{"index":12347,"time":817263944127,"process":"w4","type":"ok","f":"acquire","key":"k12","op":4711,"grant":"w4-911","token":89,"wakes":3}`,
	`{"index":12347,"time":817263944199,"process":"resource","type":"ok","f":"write","key":"k12","op":4712,"grant":"w3-911","token":88,"client":"w3","seq":1231,"version":77,"base":76,"element":3000051}`,
	`{"index":12348,"time":817263955127,"process":"w3","type":"fail","f":"release","key":"k12","op":4713,"grant":"w3-911","error":"not held"}`,
}

// TestDecodeTypical: the lines that Writer writes take the fast path, and decode to the same events.
func TestDecodeTypical(t *testing.T) {
	d := newDecoder(SchemaVersion)
	for _, line := range typical {
		var fast, slow Event
		if !d.plain([]byte(line), &fast) {
			t.Errorf("not decoded the fast way: %s", line)
		}
		if err := json.Unmarshal([]byte(line), &slow); err != nil || !reflect.DeepEqual(fast, slow) {
			t.Errorf("%s: got %+v, want %+v (%v)", line, fast, slow, err)
		}
	}
}

// FuzzDecode: whatever a line holds, the decoder agrees with encoding/json.
func FuzzDecode(f *testing.F) {
	for _, line := range typical {
		f.Add([]byte(line))
	}
	for _, line := range []string{
		`{}`, `{"index":1,}`, `{"index":01}`, `{"index":-0}`, `{"op":-5}`, `{"token":-5}`, `{"token":18446744073709551615}`,
		`{"index":999999999999999999}`, `{"index":9999999999999999999}`, `{"index":1.0}`, `{"index":1e3}`, `{"index":"1"}`,
		`{"key":"a\nb"}`, `{"key":"a\u00e9"}`, "{\"key\":\"\xff\"}", "{\"key\":\"\t\"}", `{"key":null}`, `{"KEY":"x"}`, `{"key":"a","key":"b"}`,
		`{"dead":true}`, `{"dead":"true"}`, `{"expired":true}`, `{"expired":false}`, `{"expired":"true"}`, `{"f":"phase","note":"quiet"}`, `{"wakes":-1}`, `{"wakes":1.5}`, `{"wakes":true}`, `{"value":[1,2],"key":"k"}`, `{"fault":{"id":"f1"},"time":3}`, `{"index":1}x`, ` {"index":1}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsRune(line, '\n') {
			return
		}
		for schema := 1; schema <= SchemaVersion; schema++ {
			var fast, other Event
			d := newDecoder(schema)
			fastErr, slowErr := d.decode(line, &fast), d.slow(line, &other)
			if schema == 1 {
				other.fromSchema1()
			}
			if (fastErr == nil) != (slowErr == nil) || fastErr == nil && !reflect.DeepEqual(fast, other) {
				t.Fatalf("schema %d: %q: got %+v (%v), want %+v (%v)", schema, line, fast, fastErr, other, slowErr)
			}
		}
	})
}

// TestBlocks: a file of many blocks, with lines longer than a block, reads the same as line by line.
func TestBlocks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	text.WriteString(head)
	var want []string
	for i := range 20_000 {
		note := fmt.Sprint(i)
		if random.IntN(5000) == 0 {
			note = strings.Repeat("x", blockSize+random.IntN(2*blockSize))
		}
		want = append(want, note)
		fmt.Fprintf(&text, "{\"index\":%d,\"note\":%q}\n", i, note)
	}
	for _, end := range []string{"", `{"index":`} {
		h, err := ReadAll(strings.NewReader(text.String() + end))
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Events) != len(want) {
			t.Fatalf("%d events, want %d", len(h.Events), len(want))
		}
		for i, e := range h.Events {
			if e.Index != int64(i) || e.Note != want[i] {
				t.Fatalf("event %d: %d %.20q", i, e.Index, e.Note)
			}
		}
		if wantCut := len(want) + 2; end != "" && h.Truncated != wantCut || end == "" && h.Truncated != 0 {
			t.Errorf("truncated %d, want %d", h.Truncated, wantCut)
		}
	}
	broken := text.String() + "oops\n" + strings.Repeat("{}\n", 200_000)
	_, err := ReadAll(strings.NewReader(broken))
	if syntax, ok := err.(*SyntaxError); !ok || syntax.Line != len(want)+2 {
		t.Errorf("got %v, want a syntax error on line %d", err, len(want)+2)
	}
}

func TestNames(t *testing.T) {
	names := NewNames()
	if names.Of("") != 0 || names.String(0) != "" {
		t.Error("zero is not the empty string")
	}
	const n = 50_000 // grows several times
	seen := make(map[Name]bool)
	for i := range n {
		seen[names.Of(fmt.Sprint("w1-", i))] = true
	}
	if len(seen) != n || names.Len() != n+1 {
		t.Fatalf("%d names of %d strings", len(seen), n)
	}
	for i := range n {
		s := fmt.Sprint("w1-", i)
		if name := names.Of(s); !seen[name] || names.String(name) != s {
			t.Fatalf("%s became %s", s, names.String(name))
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, decode := range map[string]func([]byte, *Event) error{
		"decoder":       newDecoder(SchemaVersion).decode,
		"encoding/json": func(line []byte, e *Event) error { *e = Event{}; return object(line, e) },
	} {
		b.Run(name, func(b *testing.B) {
			var e Event
			for i := 0; b.Loop(); i++ {
				if err := decode([]byte(typical[i%len(typical)]), &e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestEachOfPipe: events arrive as they are written, not when a block is full. An error of the caller ends
// the reading, although the input is still open.
func TestEachOfPipe(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go func() { _, _ = io.WriteString(out, head+typical[0]+"\n") }()
	reader, err := NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := reader.Each(func(*Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// TestTruncatedStream: a stream that ends unexpectedly is an error, wherever it ends.
func TestTruncatedStream(t *testing.T) {
	for _, n := range []int{0, 3, 5000} {
		text := head + strings.Repeat(typical[0]+"\n", n)
		_, err := ReadAll(io.MultiReader(strings.NewReader(text), cutStream{}))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d events: %v", n, err)
		}
	}
}

type cutStream struct{}

func (cutStream) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestBrokenText: two keys that JSON would decode to one are refused. Broken text in a field that identifies
// nothing is accepted.
func TestBrokenText(t *testing.T) {
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"{\"key\":\"k\xff\"}", false},
		{"{\"key\":\"k\xfe\"}", false},
		{`{"key":"\ud800"}`, false},
		{`{"key":"\ud83d\ude00"}`, true},
		{"{\"key\":\"k\u00e9\"}", true},
		{"{\"grant\":\"\xff\"}", false},
		{"{\"process\":\"\xff\"}", false},
		{"{\"client\":\"\xff\"}", false},
		{"{\"error\":\"\xff\"}", true},
	} {
		_, err := ReadAll(strings.NewReader(head + "{}\n" + c.line + "\n"))
		var syntax *SyntaxError
		if c.ok && err != nil || !c.ok && (!errors.As(err, &syntax) || syntax.Line != 3) {
			t.Errorf("%q: got %v, want that it is read: %t", c.line, err, c.ok)
		}
	}
}

// TestBlankLines: the last lines may be blank. The error for a blank line before another line names it, in
// whichever block it is.
func TestBlankLines(t *testing.T) {
	long := fmt.Sprintf("{\"note\":%q}\n", strings.Repeat("x", blockSize))
	for _, c := range []struct {
		name, text             string
		events, bad, truncated int
	}{
		{"none", "{}\n{}\n", 2, 0, 0},
		{"the last", "{}\n{}\n\n", 2, 0, 0},
		{"the last, of other ends of lines", "{}\r\n{}\r\n\r\n", 2, 0, 0},
		{"the last ones", "{}\n{}\n \n\t\n\n", 2, 0, 0},
		{"the last, without an end", "{}\n{}\n  ", 2, 0, 0},
		{"only", "\n", 0, 0, 0},
		{"the first", "\n{}\n", 0, 2, 0},
		{"in the middle", "{}\n\n{}\n", 1, 3, 0},
		{"two in the middle", "{}\n\n\n{}\n", 1, 3, 0},
		{"before one that was cut off", "{}\n\n{\"in", 1, 3, 0},
		{"before one that is none", "{}\n\n<\n", 1, 3, 0},
		{"after one that is none", "{}\n<\n\n", 1, 3, 0},
		{"none, cut off", "{}\n{\"in", 1, 0, 3},
		{"the last of many blocks", long + long + "\n", 2, 0, 0},
		{"between blocks", long + "\n" + long, 1, 3, 0},
		{"a block of them", long + strings.Repeat("\n", 3*blockSize) + long, 1, 3, 0},
		{"a block of them at the end", long + strings.Repeat("\n", 3*blockSize), 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader, err := NewReader(strings.NewReader(head + c.text))
			if err != nil {
				t.Fatal(err)
			}
			events := 0
			err = reader.Each(func(*Event) error { events++; return nil })
			line := 0
			if syntax, is := err.(*SyntaxError); is {
				line = syntax.Line
			} else if err != nil {
				t.Fatal(err)
			}
			if events != c.events || line != c.bad || reader.Truncated() != c.truncated {
				t.Errorf("%d events, error %v, truncated %d; want %d, one of line %d, %d", events, err, reader.Truncated(), c.events, c.bad, c.truncated)
			}
		})
	}
}
