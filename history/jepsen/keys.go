package jepsen

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"olympos.io/encoding/edn"
)

// Values of Options.Keys. Any other value begins with a colon and names a field.
const (
	KeysIndependent = "independent" // values are [key value], as jepsen.independent writes them
	KeysValue       = "value"       // the value of an :acquire or :release is its key
	KeysNone        = "none"        // there is one lock, or one set, whatever the values are
)

// hint ends an error about a history with ambiguous keys.
const hint = "; --keys says what names a lock: independent, value, none or a :field"

// lockFields name a lock, in an operation or in its value.
var lockFields = []edn.Keyword{"key", "lock", "mutex"}

// otherFields in the value of an acquire describe the client or the request, and do not name the lock.
var otherFields = []edn.Keyword{
	"client", "process", "node", "owner", "thread", "uid", "uuid", "grant", "fence", "token", "lease", "lease-id", "session", "ttl", "timeout", "wait",
}

// form is how an operation names its key.
type form int

const (
	unnamed form = iota // no key, or an ambiguous value
	byField             // {:key k}, in its value or next to it
	byTuple             // #jepsen.independent.Tuple[k v]
	byPair              // [k v]: how a tuple is printed, or just a pair
)

// naming is the key that an operation names, and how.
type naming struct {
	form
	key   string // as text
	value any    // without the key
}

// named returns n with a key. A second, different key is an error.
func (n naming) named(op *operation, f form, key any) (naming, error) {
	s, exact := text(key)
	switch {
	case !exact:
		return n, op.malformed("its key is %s, which may be several: decimal numbers and broken text are not told apart", s)
	case n.form != unnamed && n.key != s:
		return n, op.malformed("it names two keys, %s and %s%s", n.key, s, hint)
	}
	if n.form == unnamed {
		n.form, n.key = f, s
	}
	return n, nil
}

// call is an operation from its invocation to its completion; done is nil without completion.
type call struct {
	invoke, done *operation
	naming
}

func (c *call) completed(kind edn.Keyword) bool { return c.done != nil && c.done.kind == kind }

// family is all calls of locks, or all calls of sets.
type family struct {
	leading edn.Keyword   // the function whose calls decide how the others name their keys
	how     string        // Options.Keys; "" means detect
	fields  []edn.Keyword // that name the key
	calls   []call
}

// resolveKeys sets the key of each operation, and removes it from the value. It is an error if the lock or
// set of an operation is ambiguous.
func resolveKeys(ops []operation, how string) error {
	locks := family{leading: "acquire", how: how, fields: lockFields}
	sets := family{leading: "add", how: how, fields: lockFields[:1]}
	if strings.HasPrefix(how, ":") {
		locks.fields = []edn.Keyword{edn.Keyword(how[1:])}
	}
	if how != "" && how != KeysIndependent { // other values of how are about locks
		sets.how = KeysNone
	}
	locks.collectCalls(ops, "release")
	sets.collectCalls(ops, "read")
	if err := locks.resolve(); err != nil {
		return err
	}
	return sets.resolve()
}

func (f *family) collectCalls(ops []operation, other edn.Keyword) {
	open := make(map[int64]int)
	for i := range ops {
		op := &ops[i]
		at, isOpen := open[op.process]
		switch {
		case op.f != f.leading && op.f != other:
		case op.kind == "invoke":
			open[op.process] = len(f.calls)
			f.calls = append(f.calls, call{invoke: op})
		case isOpen && f.calls[at].invoke.f == op.f:
			f.calls[at].done = op
			delete(open, op.process)
		}
	}
}

func (f *family) resolve() error {
	for i := range f.calls {
		c := &f.calls[i]
		var err error
		if c.naming, err = f.naming(c.invoke); err != nil {
			return err
		}
		// A user who names a field may mean one that comes only with the answer.
		if c.form == unnamed && c.done != nil && strings.HasPrefix(f.how, ":") {
			answer, err := f.naming(c.done)
			if err != nil {
				return err
			}
			c.form, c.key = answer.form, answer.key
		}
	}
	how, err := f.form()
	if err != nil {
		return err
	}
	if err := f.assignKeys(how); err != nil || f.how != "" || f.leading != "acquire" {
		return err
	}
	return f.checkUnambiguous(how)
}

// naming finds the key that an operation names.
func (f *family) naming(op *operation) (naming, error) {
	n := naming{value: untagged(op.value)}
	switch {
	case f.how == KeysNone || f.how == KeysValue && op.value == nil:
		return n, nil
	case f.how == KeysValue:
		return n.named(op, byField, op.value)
	case strings.HasPrefix(f.how, ":"):
		return n.fields(op, f.fields)
	}
	t, err := tuple(op)
	if err != nil || f.how == KeysIndependent {
		return t, err
	}
	if t.form == byPair { // unless a field names the key more clearly
		if n, err = n.fields(op, f.fields); err != nil || n.form == byField {
			return n, err
		}
	}
	return t.fields(op, f.fields)
}

// fields returns n with the key in one of some fields of the operation, or of the rest of its value.
func (n naming) fields(op *operation, fields []edn.Keyword) (naming, error) {
	within, _ := n.value.(map[any]any)
	for _, field := range fields {
		for _, in := range []map[any]any{op.fields, within} {
			key := in[field]
			if key == nil {
				continue
			}
			var err error
			if n, err = n.named(op, byField, key); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// tuple splits the value of an operation that jepsen.independent wrote.
func tuple(op *operation) (naming, error) {
	tag, tagged := op.value.(edn.Tag)
	pair, _ := untagged(op.value).([]any)
	within, isMap := untagged(op.value).(map[any]any)
	marked := tagged && (strings.HasSuffix(tag.Tagname, "Tuple") || strings.HasSuffix(tag.Tagname, "MapEntry"))
	switch {
	case marked && len(pair) == 2:
		return naming{value: untagged(pair[1])}.named(op, byTuple, pair[0])
	case marked && isMap:
		return naming{value: untagged(within[edn.Keyword("value")])}.named(op, byTuple, within[edn.Keyword("key")])
	case marked:
		return naming{}, op.malformed("its :value is a tuple without a key")
	case !tagged && len(pair) == 2:
		return naming{value: untagged(pair[1])}.named(op, byPair, pair[0])
	}
	return naming{value: untagged(op.value)}, nil
}

// form is how the keys are named. It must be the same for all calls.
func (f *family) form() (form, error) {
	first := slices.IndexFunc(f.calls, func(c call) bool { return c.invoke.f == f.leading && !f.excused(&c) })
	if first < 0 {
		return unnamed, nil
	}
	how := f.calls[first].form
	for i := range f.calls {
		c := &f.calls[i]
		independent := f.how == KeysIndependent && how != unnamed && c.form != unnamed
		if c.form != how && !independent && !f.excused(c) {
			return how, c.invoke.malformed("its :%s names its key in another way than operation %d%s", c.invoke.f, f.calls[first].invoke.line, hint)
		}
	}
	if how == unnamed && (f.how == KeysIndependent || f.how == KeysValue || strings.HasPrefix(f.how, ":")) && f.leading == "acquire" {
		return how, f.calls[first].invoke.malformed("its :acquire names no lock, as --keys %s says", f.how)
	}
	return how, nil
}

// excused are the calls that need not name their key. A release may be of the only lock, and a failed acquire
// does not matter.
func (f *family) excused(c *call) bool {
	_, isMap := c.value.(map[any]any)
	release := c.invoke.f == "release" && (c.value == nil || isMap)
	return c.form == unnamed && (release || f.how != "" && f.how != KeysNone && c.completed("fail"))
}

// assignKeys sets the keys of the operations, and removes them from their values.
func (f *family) assignKeys(how form) error {
	for i := range f.calls {
		c := &f.calls[i]
		c.invoke.key, c.invoke.value = c.key, c.value
		if c.done == nil {
			continue
		}
		answer, err := f.naming(c.done)
		found := f.how == "" && answer.form != unnamed
		switch {
		case f.how == "" && err != nil:
			return err
		case found && answer.form == how && answer.key != c.key && c.key != "",
			found && answer.form != byPair && how == unnamed:
			return c.done.malformed("it completes what was invoked of %s, and names %s%s", cmp.Or(c.key, "no key"), answer.key, hint)
		case err == nil && how != unnamed && (answer.form == how || f.how == KeysIndependent):
			c.done.value = answer.value
		default:
			c.done.value = untagged(c.done.value)
		}
	}
	return nil
}

// checkUnambiguous checks that the detected keys of locks are reliable: the values next to them, or instead of them,
// name no locks, and pairs name keys.
func (f *family) checkUnambiguous(how form) error {
	if how == byField {
		return nil
	}
	byKey := make(map[string][]*call)
	for i := range f.calls {
		c := &f.calls[i]
		byKey[c.key] = append(byKey[c.key], c)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if err := checkOneLock(byKey[key]); err != nil {
			return err
		}
	}
	// If each key is used by one process only, no two processes could hold a key at once. Names of clients
	// would look the same.
	shared := func(calls []*call) bool {
		return slices.ContainsFunc(calls, func(c *call) bool { return c.invoke.process != calls[0].invoke.process })
	}
	if how == byPair && len(byKey) > 1 && !slices.ContainsFunc(slices.Collect(maps.Values(byKey)), shared) {
		return f.calls[0].invoke.malformed("each k of [k v] is used by one process alone, and may be a key or a client%s", hint)
	}
	return nil
}

// checkOneLock checks that the values of these calls do not name several locks.
func checkOneLock(calls []*call) error {
	var acquired, answered, released values
	for _, c := range calls {
		switch {
		case c.invoke.f == "release":
			released.add(c.invoke)
			continue
		case c.completed("ok"):
			if _, isMap := c.done.value.(map[any]any); !isMap {
				answered.add(c.done)
			}
		}
		acquired.add(c.invoke)
	}
	// If no release has a value that an acquire has, the values name operations.
	ofOperation := released.given > 0 && !acquired.meets(released)
	switch {
	case ofOperation:
		return nil
	case acquired.other != nil:
		return acquired.other.malformed("operations acquire %s, which may be locks, clients or attempts%s", acquired.list(), hint)
	case answered.other != nil && len(answered.texts) < answered.n:
		return answered.other.malformed("acquires are answered with %s, one of them several times: they may be locks or clients%s", answered.list(), hint)
	}
	return nil
}

// values are the values of some operations as text, without the fields that name no lock.
type values struct {
	texts    map[string]bool
	n, given int        // number of all values, and of those that are not nil
	other    *operation // the first operation whose value may differ from an earlier one
}

func (v *values) add(op *operation) {
	value := op.value
	if fields, is := value.(map[any]any); is {
		fields = maps.Clone(fields)
		for _, field := range otherFields {
			delete(fields, field)
		}
		if value = fields; len(fields) == 0 {
			value = nil
		}
	}
	if v.texts == nil {
		v.texts = make(map[string]bool)
	}
	s, exact := text(value)
	if v.n++; v.n > 1 && v.other == nil && !(v.texts[s] && exact) {
		v.other = op
	}
	if v.texts[s] = true; value != nil {
		v.given++
	}
}

func (v *values) meets(other values) bool {
	for s := range other.texts {
		if v.texts[s] {
			return true
		}
	}
	return false
}

// list names the first two values.
func (v *values) list() string {
	texts := slices.Sorted(maps.Keys(v.texts))
	return strings.Join(texts[:min(2, len(texts))], " and ")
}
