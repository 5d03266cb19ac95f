package jepsen

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"olympos.io/encoding/edn"
)

// Values of Options.Keys; any other begins with a colon and is the name of a field.
const (
	KeysIndependent = "independent" // values are [key value], as jepsen.independent makes them
	KeysValue       = "value"       // the value of an :acquire or :release is its key
	KeysNone        = "none"        // there is one lock, or one set, whatever the values are
)

// hint ends what is said of a history whose locks are not certain.
const hint = "; --keys says what names a lock: independent, value, none or a :field"

// lockFields name a lock, in an operation or in its value.
var lockFields = []edn.Keyword{"key", "lock", "mutex"}

// otherFields in the value of an acquire say who it is, or how it is to be done.
var otherFields = []edn.Keyword{
	"client", "process", "node", "owner", "thread", "uid", "uuid", "grant", "fence", "token", "lease", "lease-id", "session", "ttl", "timeout", "wait",
}

// form is how an operation names its key.
type form int

const (
	unnamed form = iota // not at all, or by what may be anything
	byField             // {:key k}, in its value or next to it
	byTuple             // #jepsen.independent.Tuple[k v]
	byPair              // [k v]: how a tuple is printed, or just a pair
)

// naming is what an operation says of its key.
type naming struct {
	form
	key   string // as text
	value any    // without the key
}

// named is n with a key, which must be the only one.
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

// call is an operation from its invocation to its completion, which is nil if there is none.
type call struct {
	invoke, done *operation
	naming
}

func (c *call) completed(kind edn.Keyword) bool { return c.done != nil && c.done.kind == kind }

// family is what is called of locks, or of sets.
type family struct {
	leading edn.Keyword   // the function whose calls say how the others name their keys
	how     string        // keys are named, as the user said; "" is to find out
	fields  []edn.Keyword // that name them
	calls   []call
}

// resolveKeys sets the key of each operation, and leaves of its value what is not its key.
// It is an error where it is not certain which lock or set an operation is about.
func resolveKeys(ops []operation, how string) error {
	locks := family{leading: "acquire", how: how, fields: lockFields}
	sets := family{leading: "add", how: how, fields: lockFields[:1]}
	if strings.HasPrefix(how, ":") {
		locks.fields = []edn.Keyword{edn.Keyword(how[1:])}
	}
	if how != "" && how != KeysIndependent { // which is about locks
		sets.how = KeysNone
	}
	locks.pair(ops, "release")
	sets.pair(ops, "read")
	if err := locks.resolve(); err != nil {
		return err
	}
	return sets.resolve()
}

// pair finds the calls of the leading and of another function.
func (f *family) pair(ops []operation, other edn.Keyword) {
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
		// Who says by which field knows that it may come with the answer.
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
	if err := f.settle(how); err != nil || f.how != "" || f.leading != "acquire" {
		return err
	}
	return f.certain(how)
}

// naming is what an operation says of its key.
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
	if t.form == byPair { // unless a field says more plainly
		if n, err = n.fields(op, f.fields); err != nil || n.form == byField {
			return n, err
		}
	}
	return t.fields(op, f.fields)
}

// fields is n with the key that some fields of an operation, or of what is left of its
// value, give.
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

// tuple takes apart what jepsen.independent makes of the value of an operation.
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

// form is how the keys are named, which has to be the same of all.
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

// excused are the calls that need not name their key: a release may be of the only lock
// that there is, and an acquire that failed is of no matter.
func (f *family) excused(c *call) bool {
	_, isMap := c.value.(map[any]any)
	release := c.invoke.f == "release" && (c.value == nil || isMap)
	return c.form == unnamed && (release || f.how != "" && f.how != KeysNone && c.completed("fail"))
}

// settle hands the operations their keys and what is left of their values.
func (f *family) settle(how form) error {
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

// certain says whether what was found out about the keys of locks can be relied on: the
// values next to them, or instead of them, are no names of locks, and pairs are of keys.
func (f *family) certain(how form) error {
	if how == byField {
		return nil
	}
	byKey := make(map[string][]*call)
	for i := range f.calls {
		c := &f.calls[i]
		byKey[c.key] = append(byKey[c.key], c)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if err := one(byKey[key]); err != nil {
			return err
		}
	}
	// Nobody could hold a key that one process uses alone at the same time as another; the
	// name of a client would look like that.
	shared := func(calls []*call) bool {
		return slices.ContainsFunc(calls, func(c *call) bool { return c.invoke.process != calls[0].invoke.process })
	}
	if how == byPair && len(byKey) > 1 && !slices.ContainsFunc(slices.Collect(maps.Values(byKey)), shared) {
		return f.calls[0].invoke.malformed("each k of [k v] is used by one process alone, and may be a key or a client%s", hint)
	}
	return nil
}

// one says that the values of these calls do not name several locks.
func one(calls []*call) error {
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
	// Where no release has a value that an acquire has, it is a name of the operation.
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

// values are those of some operations, without what names no lock, as text.
type values struct {
	texts    map[string]bool
	n, given int        // all of them, and those that are not nil
	other    *operation // the first whose value may be another than one before it
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

// list names the first two.
func (v *values) list() string {
	texts := slices.Sorted(maps.Keys(v.texts))
	return strings.Join(texts[:min(2, len(texts))], " and ")
}
