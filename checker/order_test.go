package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// tokenScript is a script of a lock with tokens.
func tokenScript() *script {
	return newScript().with(func(h *history.Header) { h.Tokens = true })
}

// TestTokenBehindAnError: a grant that is wrong in another way does not hide a contradiction between other
// tokens.
func TestTokenBehindAnError(t *testing.T) {
	s := tokenScript().
		acquireToken("w1", "b", 10, 20, 5).release("b", 21, 22).
		try("w2", "x", 12, 60, history.Event{Type: history.Info, Error: "timeout"}).
		busy("w4", "y", 20.2, 20.5, "x").
		acquireToken("w3", "d", 15, 40, 3).release("d", 50, 51).
		write("b", 20.5, 1, 0, 1).write("d", 45, 2, 1, 2).final("k0", "[1,2]").end()
	want(t, s.check(t), FencingOrder, Undecided, 0)
}

// TestTokenBehindWaiters: simultaneous waiters that get rising tokens do not hide that a token is lower than
// an earlier one.
func TestTokenBehindWaiters(t *testing.T) {
	waiting := func(token uint64) *script {
		return tokenScript().acquireToken("w1", "a", 10, 11, 10).
			acquireToken("w3", "c", 12, 30, 20).release("c", 31, 32).
			acquireToken("w4", "d", 12, 40, 21).release("d", 41, 42).
			acquireToken("w2", "b", 15, 16, token).release("b", 18, 19)
	}
	want(t, waiting(9).end().check(t), FencingOrder, Violation, 1)
	want(t, waiting(11).end().check(t), FencingOrder, Valid, 0)

	// Two late answers do not tell when their grants were in force either.
	late := func(token uint64) *script {
		return tokenScript().acquireToken("w1", "a", 10, 11, 10).release("a", 12, 13).
			acquireToken("w3", "c", 14, 400, 20).acquireToken("w4", "d", 15, 401, 21).
			acquireToken("w2", "b", 12.5, 250, token).release("b", 260, 261)
	}
	want(t, late(9).end().check(t), FencingOrder, Violation, 1)
	want(t, late(11).end().check(t), FencingOrder, Valid, 0)
}

// TestTokensCounted: each grant with a wrong token counts once, whatever the number of keys. For waiters in a
// queue no wrong token is certain.
func TestTokensCounted(t *testing.T) {
	queue := tokenScript().with(session)
	queue.header.Workers = nil
	for i := range 10 { // all wait at once, and are served one after the other
		worker, g, at := fmt.Sprintf("w%d", i+1), fmt.Sprint("g", i), 30+10*float64(i)
		queue.header.Workers = append(queue.header.Workers, worker)
		queue.try(worker, g, 10+float64(i)/100, at, history.Event{Type: history.OK, Token: uint64(20 - i)}).release(g, at+5, at+6)
	}
	want(t, queue.end().check(t), FencingOrder, Undecided, 0)
	if o := secondOpinion(newRun(queue.history(t)), time.Second); o.doubts.total != 9 {
		t.Errorf("%d doubts, want 9", o.doubts.total)
	}

	keys := tokenScript()
	for i := range 150 {
		key, at := fmt.Sprint("k", i), 10+20*float64(i)
		keys.try("w1", key+"a", at, at+1, history.Event{Type: history.OK, Token: 5}, key).release(key+"a", at+2, at+3)
		keys.try("w2", key+"b", at+4, at+5, history.Event{Type: history.OK, Token: 4}, key).release(key+"b", at+6, at+7)
	}
	want(t, keys.end().check(t), FencingOrder, Violation, 150)
}

// TestTokensAgainstPairs: in any order, tokens are found wrong if and only if comparing all pairs finds them
// wrong.
func TestTokensAgainstPairs(t *testing.T) {
	wrong := 0
	for seed := range histories(4000) {
		random := rand.New(rand.NewPCG(seed, 11))
		w := simulation.Random(random, random.IntN(2) == 0)
		w.Tokens, w.Permits, w.Reentrant = true, 1, 1
		if w.Workload == history.WorkloadReadWrite {
			w.Workload = history.WorkloadSet
		}
		h, _ := simulation.Run(seed, w)
		if seed%2 == 0 {
			h = waiting(random).end().history(t)
		}
		r := Check(h, Options{})
		expected, twins := tokensWrongInPairs(newRun(h))
		if len(expected)+twins > 0 {
			wrong++
		}
		if got := r.of(FencingOrder).Total; got < len(expected) || got > len(expected)+twins {
			t.Fatalf("seed %d: %d tokens found wrong, want %d, and of %d equal pairs one each\n%s", seed, got, len(expected), twins, dumpEvents(h))
		}
	}
	if wrong < 200 && !testing.Short() {
		t.Errorf("only %d histories with wrong tokens", wrong)
	}
}

// waiting has workers that wait at the same time, for long or not, and get arbitrary tokens.
func waiting(random *rand.Rand) *script {
	s := tokenScript()
	some := func(most int) float64 { return float64(1 + random.IntN(most)) }
	for w := range 4 {
		at := some(20)
		for i := range 1 + random.IntN(3) {
			g, answered := fmt.Sprintf("%c%d", 'a'+w, i), at+some(1+random.IntN(40))
			s.acquireToken(fmt.Sprintf("w%d", w+1), g, at, answered, uint64(some(12)))
			at = answered + some(5) + 2
			if random.IntN(4) > 0 {
				s.release(g, at-2, at-1)
			}
		}
	}
	return s
}

// tokensWrongInPairs compares all pairs of grants by their answers. It returns the grants with a lower token
// than an earlier one, and the number of pairs with equal tokens.
func tokensWrongInPairs(r *run) (lower map[*attempt]bool, twins int) {
	lower = make(map[*attempt]bool)
	swapped := func(a, b *attempt) bool { return a.acquire.done < b.acquire.invoke && a.token > b.token }
	for _, key := range r.keys {
		holds := r.byKey[key].holds
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				switch {
				case a.token == 0 || b.token == 0:
				case a.token == b.token:
					twins++
				case swapped(a, b):
					lower[b] = true
				case swapped(b, a):
					lower[a] = true
				}
			}
		}
	}
	return lower, twins
}

// TestLongKeys: a key that is too long for porcupine is judged by the order of grants.
func TestLongKeys(t *testing.T) {
	long := func() *script {
		s := newScript()
		for i := range maxSteps {
			g, at := fmt.Sprint("g", i), 10+4*float64(i)
			s.acquire(fmt.Sprintf("w%d", i%4+1), g, at, at+1).release(g, at+2, at+3)
		}
		return s
	}
	if f := long().end().check(t).of(Linearizability); f.Verdict != Valid || !strings.Contains(factsText(f.Facts), "porcupine-silent") {
		t.Errorf("%s: %s", f.Verdict, factsText(f.Facts))
	}
	bad := long().try("w9", "x", 101, 102, history.Event{Type: history.OK}).release("x", 105.5, 105.7)
	bad.header.Workers = append(bad.header.Workers, "w9")
	r := bad.end().check(t)
	if f := r.of(Linearizability); f.Verdict != Violation {
		t.Errorf("%s: %s", f.Verdict, factsText(f.Facts))
	}
	noBug(t, r)
	// Grants of a semaphore have no order that could replace porcupine.
	shared := func(s *script) *script { return s.with(func(h *history.Header) { h.Permits = 2 }) }
	r = shared(long()).end().check(t)
	if f := r.of(Linearizability); f.Verdict != Undecided || !strings.Contains(factsText(f.Facts), "kind:porcupine-silent,keys:[k0]") {
		t.Errorf("a long semaphore: %s: %s", f.Verdict, factsText(f.Facts))
	}
	crowded := shared(bad).try("w8", "y", 101, 102, history.Event{Type: history.OK}).release("y", 105.5, 105.7)
	crowded.header.Workers = append(crowded.header.Workers, "w8")
	r = crowded.check(t)
	want(t, r, MutualExclusion, Violation, 1)
	noBug(t, r)
	want(t, shared(newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 12, 13)).end().check(t), Linearizability, Valid, 0)
}

// TestOverwriters compares with a scan for each lost update.
func TestOverwriters(t *testing.T) {
	for seed := range histories(2000) {
		random := rand.New(rand.NewPCG(seed, 12))
		k := &keyed{}
		for i := range 1 + random.IntN(30) {
			k.accesses = append(k.accesses, access{
				seq: int64(i + 1), version: int64(i + 1), base: int64(random.IntN(i + 1)), element: int64(i + 1),
				write: random.IntN(5) > 0, refused: random.IntN(6) == 0,
			})
		}
		var lost []*access
		for w := range k.accepted {
			if random.IntN(2) == 0 {
				lost = append(lost, w)
			}
		}
		for i, got := range k.overwriters(lost) {
			var expected *access
			for e := range k.accepted {
				if e.seq > lost[i].seq && e.base < lost[i].version && expected == nil {
					expected = e
				}
			}
			if got != expected {
				t.Fatalf("seed %d: update %d: %+v, want %+v", seed, lost[i].seq, got, expected)
			}
		}
	}
}

// TestSameTokens: of grants with one token, all except the first are wrong.
func TestSameTokens(t *testing.T) {
	s := tokenScript()
	for i, from := range []float64{10, 11, 12} {
		s.try(fmt.Sprintf("w%d", i+1), fmt.Sprintf("g%d", i), from, from+10, history.Event{Type: history.OK, Until: ms(from + 100), Token: 5})
	}
	if f := s.end().check(t).of(FencingOrder); f.Total != 2 {
		t.Errorf("%d tokens are wrong of three that are one: %s", f.Total, factsText(f.Facts))
	}
}
