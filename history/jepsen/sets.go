package jepsen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"lockcheck/history"
)

// set is what is added to one key, and read from it.
type set struct {
	key     string
	version int64
	reading int // line in which the read of the final state begins; 0 for none
	last    int // line of the last acknowledged add that this read must see
	late    int // number of adds that were acknowledged later, and are not judged
	reads   []finalRead
	// uncertain are the elements that a read may have or lack.
	uncertain map[int64]bool
}

// finalRead is what a read returned, and the line in which it began.
type finalRead struct {
	line     int
	time     int64
	elements []int64
}

// set returns the set that a key names.
func (c *converter) set(key string) *set {
	key = cmp.Or(key, defaultKey)
	if c.sets[key] == nil {
		c.sets[key] = &set{key: key, uncertain: make(map[int64]bool)}
	}
	return c.sets[key]
}

// recordAdd records how an add ended, and says whether the final state must have its element.
func (s *set) recordAdd(e history.Event, line int) bool {
	if e.Type != history.OK {
		return false
	}
	if s.reading != 0 && line > s.reading {
		s.late++
		return false
	}
	s.last = line
	delete(s.uncertain, e.Element)
	return true
}

// isFinalRead says that a read returned a set. nil is none, not the empty set.
func (op *operation) isFinalRead() bool { return op.f == "read" && op.kind == "ok" && op.value != nil }

// recordRead records the result of a read that began in line.
func (s *set) recordRead(op operation, time int64, line int, raised int64) error {
	if !op.isFinalRead() {
		return nil
	}
	elements, err := elementsOf(op.value)
	if err != nil {
		return op.malformed("%v", err)
	}
	for i := range elements {
		elements[i] += raised
	}
	s.reads = append(s.reads, finalRead{line, time, elements})
	return nil
}

// finals are the final states of the set: the result of the last read, preceded by the results of other
// reads. Another read counts if it began after all adds were acknowledged, and differs by more than uncertain
// elements.
func (s *set) finals() []history.Event {
	var finals []history.Event
	if len(s.reads) == 0 {
		return nil
	}
	last := s.reads[len(s.reads)-1]
	for i, read := range s.reads {
		if i < len(s.reads)-1 && (read.line < s.last || slices.Equal(s.withoutUncertain(read.elements), s.withoutUncertain(last.elements))) {
			continue
		}
		value, _ := json.Marshal(read.elements) // integers cannot fail
		finals = append(finals, history.Event{Time: read.time, Process: history.Resource, Type: history.OK, F: history.Final, Key: s.key, Version: s.version, Value: value})
	}
	return finals
}

func (s *set) withoutUncertain(elements []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(elements), func(e int64) bool { return s.uncertain[e] })
}

// elementsOf lists what a read returned: a set, or a vector, in which an element may occur more than once.
func elementsOf(value any) ([]int64, error) {
	members, isVector := value.([]any)
	set, isSet := value.(map[any]bool)
	if !isVector && !isSet {
		return nil, fmt.Errorf("a read returned %T", value)
	}
	elements := []int64{}
	for _, x := range slices.AppendSeq(members, maps.Keys(set)) {
		n, is := x.(int64)
		if !is {
			return nil, fmt.Errorf("a read returned %v, which is no integer", x)
		}
		elements = append(elements, n)
	}
	slices.Sort(elements)
	return elements, nil
}
