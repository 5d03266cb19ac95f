package present

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

const ms = int64(time.Millisecond)

// alone is the presenter of a run with one worker.
func alone() presenter {
	p := leased()
	p.header.Workers = []string{"w1"}
	return p
}

// leased is the presenter of a run that began at 10 ms, of a lock with a lease.
func leased() presenter {
	return presenter{
		header:  history.Header{Lock: "redis", Lease: 100 * time.Millisecond, Grace: 50 * time.Millisecond, Guard: history.GuardNone},
		results: &checker.Results{Begin: 10 * ms},
	}
}

// connected is the presenter of a run of a lock that lasts as long as its connection.
func connected() presenter {
	p := leased()
	p.header.Lock, p.header.Lease = "postgres-session", 0
	return p
}

func semaphore() presenter {
	p := leased()
	p.header.Permits = 3
	return p
}

// kindsOfChecker lists the constants of a type, such as FactKind, in package checker: the names by their
// values.
func kindsOfChecker(t *testing.T, typ string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../checker/facts.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if name, is := spec.Type.(*ast.Ident); is && name.Name == typ {
			kinds[strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)] = spec.Names[0].Name
		}
		return true
	})
	if len(kinds) < 5 {
		t.Fatalf("%s has %d kinds", typ, len(kinds))
	}
	return kinds
}

// TestFacts: each kind of fact has its sentence.
func TestFacts(t *testing.T) {
	counted := leased()
	counted.results.Overlaps = checker.OverlapSummary{DoubleGrants: 1, UsesAfterExpiry: 2, Unclassified: 1, Longest: 20 * time.Millisecond}
	counted.results.Updates = checker.UpdateSummary{Acknowledged: 9, Lost: 1, Duplicated: 2, Repeated: 1, Phantom: 3, LossInterval: checker.LossInterval{LostHigh: 0.5, LostOver: checker.OverFaults, LostUnits: 1}}
	kept := leased()
	kept.results.Updates = checker.UpdateSummary{Acknowledged: 1, LossInterval: checker.LossInterval{LostHigh: 1}}
	measured := leased()
	measured.results.Orphans = checker.OrphanSummary{Killed: 3, Stuck: 1, Longest: time.Second, Victim: "w1"}
	measured.results.Failovers = checker.FailoverSummary{Holders: 3, Stuck: 1, Median: time.Second, Longest: 2 * time.Second}
	measured.results.LossNotifications = checker.LossNotificationSummary{Replaced: 3, Notified: 1, AtRelease: 2, Latest: 5 * time.Millisecond}
	measured.results.Noticed = checker.Noticed{UntrueLosses: 1, UntrueIdle: 3 * time.Millisecond, IdleReleases: 2, Idle: 2 * time.Second}
	one := leased()
	one.results.Orphans = checker.OrphanSummary{Killed: 1, Longest: time.Second, Victim: "w1"}
	stuck := leased()
	stuck.results.Findings = []checker.Finding{{Property: checker.Liveness, Violations: []checker.Incident{{Kind: checker.KindStuckKey, Key: "k0", To: 2e9}}}}
	sessions := connected()
	sessions.results.Failovers = checker.FailoverSummary{Holders: 1, Median: time.Second, Longest: time.Second}
	covered := leased()
	covered.header.Workers = []string{"w1"}
	covered.results.Faults = []checker.FaultCoverage{
		{Kind: history.Pause, Targets: []string{"w1"}, Applied: true, Proven: true, Exercised: true, Outlasted: true, Since: 3 * time.Millisecond},
		{Kind: history.Kill, Targets: []string{"w1"}, Applied: true, Since: 9 * time.Millisecond},
		{Kind: history.Clock, Targets: []string{"n1"}, Applied: true, Since: time.Millisecond},
	}
	readers, again, mutex := leased(), leased(), leased()
	readers.header.Workload, again.header.Reentrant, mutex.header.Workload = history.WorkloadReadWrite, 2, history.WorkloadMutex
	lower := &checker.Incident{Kind: checker.KindTokenLower, Key: "k0", Workers: []string{"w1", "w2"}, Figures: checker.IncidentFigures{Tokens: []uint64{7, 5}}}
	key, both, long := []string{"k0"}, []string{"w1", "w2"}, []string{"k0", "k1", "k2", "k3", "k4"}
	seen := make(map[string]bool)
	for _, c := range []struct {
		p    presenter
		fact checker.Fact
		want string
	}{
		{leased(), checker.Fact{Kind: checker.FactNeverHeld}, "no worker ever held the lock"},
		{leased(), checker.Fact{Kind: checker.FactSharedByRight}, "several workers may hold this lock at once"},
		{leased(), checker.Fact{Kind: checker.FactWritesNothing}, "the workload writes nothing"},
		{counted, checker.Fact{Kind: checker.FactOverlaps, N: 4}, "4 overlaps of holders (1 double grant, 2 uses after expiry, 1 of unknown kind); longest 20 ms"},
		{leased(), checker.Fact{Kind: checker.FactSingleWorker}, "a single worker cannot overlap with another; run at least 2 (--concurrency 2)"},
		{leased(), checker.Fact{Kind: checker.FactPermitsForAll}, "no worker can be one too many: there are permits for all"},
		{leased(), checker.Fact{Kind: checker.FactGrantedMeanwhile, Keys: key, Workers: both, At: 15 * ms}, "w1 was granted k0 at 5 ms while w2 had it; nothing more is known of that hold"},
		{leased(), checker.Fact{Kind: checker.FactNobodyTookTurns}, "each lock was granted to only one worker, although another one asked for a free lock: nothing shows that the lock keeps anybody out; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactHoldsApart, N: 1}, "1 hold, never two at once"},
		{semaphore(), checker.Fact{Kind: checker.FactHoldsApart, N: 2}, "2 holds, never more than 3 at once"},
		{readers, checker.Fact{Kind: checker.FactHoldsApart, N: 2}, "2 holds, no writer next to another holder"},
		{leased(), checker.Fact{Kind: checker.FactInsideAtOnce, N: 2}, "the resource saw 2 workers at once"},
		{leased(), checker.Fact{Kind: checker.FactExpiredGrants, N: 1}, "1 grant arrived that the service no longer had on record"},
		{leased(), checker.Fact{Kind: checker.FactNoExpiredGrant}, "no grant is known to have arrived too late"},
		{leased(), checker.Fact{Kind: checker.FactWrongReleases, N: 2}, "2 releases succeeded although another worker held the lock"},
		{leased(), checker.Fact{Kind: checker.FactNoRelease}, "no release was acknowledged"},
		{leased(), checker.Fact{Kind: checker.FactReleases, N: 1}, "1 release, none while another worker held the lock"},
		{leased(), checker.Fact{Kind: checker.FactWrongRenewals, N: 2}, "2 renewals succeeded after another worker had been granted the lock"},
		{leased(), checker.Fact{Kind: checker.FactNoRenewal}, "no renewal was acknowledged whose lease is on record"},
		{leased(), checker.Fact{Kind: checker.FactRenewals, N: 1}, "1 renewal, none after another worker had been granted the lock"},
		{leased(), checker.Fact{Kind: checker.FactUntrueLosses, N: 1, Of: 2}, "1 of 2 reported losses was untrue: the release succeeded afterwards"},
		{leased(), checker.Fact{Kind: checker.FactLossesTrue, N: 1}, "1 reported loss, none known to be untrue"},
		{leased(), checker.Fact{Kind: checker.FactIdleLocks, N: 1, Of: 9, Limit: 500 * time.Millisecond}, "the lock was idle after 1 of 9 releases for more than 500 ms, though a worker asked for it"},
		{leased(), checker.Fact{Kind: checker.FactHandedOver, N: 2, Limit: time.Second, Length: 3 * time.Millisecond}, "2 releases while another worker asked for the lock, which was granted again within 3 ms (bound 1 s)"},
		{leased(), checker.Fact{Kind: checker.FactLateFailovers, N: 1, Of: 2, Limit: time.Second}, "1 of 2 failovers took longer than 1 s, though another worker asked for the lock and could reach the servers"},
		{leased(), checker.Fact{Kind: checker.FactFailovers, N: 1, Limit: time.Second}, "1 failover, none longer than 1 s"},
		{leased(), checker.Fact{Kind: checker.FactTokensWrong, N: 2}, "2 tokens did not increase"},
		{leased(), checker.Fact{Kind: checker.FactTokensDoubtful, Incident: lower}, "w2 got token 5 for k0, lower than w1's 7 before it, or the lock was granted to both at once"},
		{leased(), checker.Fact{Kind: checker.FactTokensMissing, N: 1, Of: 5}, "1 of 5 grants came without a token"},
		{leased(), checker.Fact{Kind: checker.FactTokensIncrease, N: 5}, "5 tokens, always increasing"},
		{again, checker.Fact{Kind: checker.FactTokensIncrease, N: 5}, "5 tokens, always increasing unless a worker took its own lock again"},
		{leased(), checker.Fact{Kind: checker.FactNoTokens}, "this lock has no tokens"},
		{leased(), checker.Fact{Kind: checker.FactNoToken}, "no grant came with a token"},
		{leased(), checker.Fact{Kind: checker.FactNotLinearizable, Keys: long}, "no mutex could have given these answers for k0, k1, k2 and 2 more"},
		{semaphore(), checker.Fact{Kind: checker.FactNotLinearizable, Keys: key}, "no semaphore of 3 permits could have given these answers for k0"},
		{readers, checker.Fact{Kind: checker.FactLinearizable, N: 4, Of: 1}, "4 operations on 1 key, consistent with a single lock that readers share"},
		{leased(), checker.Fact{Kind: checker.FactSilent, Keys: key}, "the order of grants alone decides about k0: porcupine was not asked or gave no answer"},
		{leased(), checker.Fact{Kind: checker.FactUnordered}, "workers that share a lock have no order to judge by"},
		{leased(), checker.Fact{Kind: checker.FactContradictory, Keys: key}, "the history contradicts itself for k0"},
		{leased(), checker.Fact{Kind: checker.FactNoAnswers}, "there are no answers to judge"},
		{leased(), checker.Fact{Kind: checker.FactStaleWrites, N: 1}, "1 write was accepted from a holder that a later one had replaced"},
		{leased(), checker.Fact{Kind: checker.FactUnlockedWrites, N: 2}, "2 writes were accepted without the lock"},
		{leased(), checker.Fact{Kind: checker.FactNoWrite}, "no write was accepted"},
		{leased(), checker.Fact{Kind: checker.FactTookTurns, Keys: key}, "two holders wrote to k0 in turns, and the record does not say which of them had been replaced"},
		{leased(), checker.Fact{Kind: checker.FactWrites, N: 3}, "3 writes accepted, none from a replaced holder"},
		{counted, checker.Fact{Kind: checker.FactUpdatesWrong}, "1 of 9 acknowledged updates were lost, 2 elements are in a final state more than once, 1 job was done twice, 3 updates are in a final state although the resource never accepted them (share: at most 0.5, 95 % interval over 1 fault)"},
		{kept, checker.Fact{Kind: checker.FactUpdatesKept}, "1 acknowledged update, none lost (no 95 % interval)"},
		{leased(), checker.Fact{Kind: checker.FactFinalUnread, Keys: key, N: 1}, "the final state of k0 was never read (1 acknowledged update)"},
		{leased(), checker.Fact{Kind: checker.FactFinalsDiffer, Keys: key}, "the final reads of k0 differ, without a write in between"},
		{leased(), checker.Fact{Kind: checker.FactNoUpdate}, "no update was acknowledged"},
		{leased(), checker.Fact{Kind: checker.FactReadsChanged, N: 1}, "1 reader saw the data change under the lock"},
		{leased(), checker.Fact{Kind: checker.FactNoRepeatedRead}, "no reader read the data twice under the lock"},
		{leased(), checker.Fact{Kind: checker.FactReadsRepeated, N: 2}, "2 reads were repeated under the lock, with the same result"},
		{leased(), checker.Fact{Kind: checker.FactNeverHealed, Faults: []string{"f1"}}, "fault f1 was never healed"},
		{stuck, checker.Fact{Kind: checker.FactStuck, N: 2, Limit: time.Second}, "no worker could acquire k0 for 2 s, though no live worker held it (and 1 more like it); the limit is 1 s"},
		{leased(), checker.Fact{Kind: checker.FactStalled, Limit: time.Second, Length: 50 * time.Millisecond, Incident: &checker.Incident{Kind: checker.KindNothingButErrors, Workers: both, To: 2e9}},
			"w1 got nothing but errors for 2 s when it asked for the lock; the limit is 1 s, and this machine stalled for 50 ms of that time"},
		{leased(), checker.Fact{Kind: checker.FactPerhapsHeld, Keys: key, Length: time.Second, N: 1, Since: checker.Since{Event: checker.SinceHealed}},
			"after the last fault was healed no worker is known to have acquired k0 for 1 s, but 1 acquire of unknown outcome may have held it"},
		{leased(), checker.Fact{Kind: checker.FactAcquired, N: 3}, "3 acquires succeeded, and there was no fault to recover from"},
		{leased(), checker.Fact{Kind: checker.FactRecovered, Length: time.Second, Since: checker.Since{Event: checker.SinceKill, Killed: both}}, "the lock was acquired 1 s after w1, w2 were killed"},
		{leased(), checker.Fact{Kind: checker.FactNobodyTried, Since: checker.Since{Event: checker.SinceStart}}, "no worker tried to acquire the lock after the start"},
		{leased(), checker.Fact{Kind: checker.FactNobodyTriedLong, Since: checker.Since{Event: checker.SinceHealed}, Limit: time.Second}, "no worker acquired the lock after the last fault was healed, but none tried for longer than the limit of 1 s"},
		{leased(), checker.Fact{Kind: checker.FactLivenessMeasured}, ""},
		{measured, checker.Fact{Kind: checker.FactLivenessMeasured}, "the locks of 3 killed holders were granted again after at most 1 s (that of w1), 1 of them never, lease 100 ms; " +
			"the lock failed over 1 s after its holder was stopped, cut off or killed (median of 2; longest 2 s; lease 100 ms); " +
			"of 3 replaced holders, 1 learned of the loss before the release (at most 5 ms after the next grant), 2 at the release, 0 never; " +
			"1 untrue loss: the lock was reported as lost, but its release succeeded afterwards (3 ms from loss to release in all); " +
			"2 idle releases: no worker was granted the lock for more than 500 ms afterwards, though others asked for it (2 s in all)"},
		{sessions, checker.Fact{Kind: checker.FactLivenessMeasured}, "the lock failed over 1 s after its holder was stopped, cut off or killed (median of 1; longest 1 s)"},
		{one, checker.Fact{Kind: checker.FactLivenessMeasured}, "the lock of w1 was granted again 1 s after w1 was killed, lease 100 ms"},
		{leased(), checker.Fact{Kind: checker.FactNotProvenHealed, Faults: []string{"f1"}}, "fault f1 could not be proven healed"},
		{leased(), checker.Fact{Kind: checker.FactNotProvenHealed, Faults: []string{"f1", "f2"}}, "faults f1, f2 could not be proven healed"},
		{leased(), checker.Fact{Kind: checker.FactNoFaults}, "no faults were asked for"},
		{covered, checker.Fact{Kind: checker.FactFaultsCovered}, "1 of 1 pause hit a holder, 1 outlasted its lease; 0 of 1 kill hit a worker that held the lock or was about to; " +
			"0 of 1 clock fault proven and exercised; faults took effect 3 ms after the event that they waited for (median of 3; longest 9 ms)"},
		{leased(), checker.Fact{Kind: checker.FactNeverApplied, FaultKind: "pause"}, "no pause was ever applied; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactNeverProven, FaultKind: "pause"}, "no pause could be proven"},
		{leased(), checker.Fact{Kind: checker.FactMissedMoment, FaultKind: "pause"}, "no pause came at the moment that it was aimed at; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactMissedWorkers, FaultKind: "kill"}, "no kill hit a worker that held the lock or was about to; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactMissedHolders, FaultKind: "pause"}, "no pause hit a holder inside its section while another worker asked for the lock; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactMissedOperations, FaultKind: "pause"}, "no pause of a server met an operation; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactMissedPackets, FaultKind: "partition"}, "no partition met a packet; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactMissedDisk, FaultKind: "slow-disk"}, "no operation of a server on its disk met the slow-disk; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactMissedAll, FaultKind: "clock"}, "no clock was moved while a worker held the lock or asked for it; a longer --time-limit gives it more chances"},
		{leased(), checker.Fact{Kind: checker.FactEffectUnknown, FaultKind: "storm"}, "no storm is known to have mattered"},
		{leased(), checker.Fact{Kind: checker.FactComplete}, "the run is complete and did its work"},
		{leased(), checker.Fact{Kind: checker.FactCutOff, N: 17}, "line 17 of the history is cut off and was left out"},
		{leased(), checker.Fact{Kind: checker.FactInterrupted}, "the run was interrupted before its end; run it again for a verdict"},
		{leased(), checker.Fact{Kind: checker.FactTooFew, N: 2, Of: 3}, "only 2 updates were acknowledged, 3 are needed; a run with a longer --time-limit would do enough"},
		{mutex, checker.Fact{Kind: checker.FactTooFew, Of: 1}, "only 0 holds were released, 1 is needed; no worker came to ask for the lock, so the machine is busy: run it with a longer --time-limit"},
		{leased(), checker.Fact{Kind: checker.FactReadsRefused, N: 1, Of: 4}, "the resource refused reads in 1 hold (guard none), although the lock was granted: 4 releases succeeded"},
		{leased(), checker.Fact{Kind: checker.FactRunFailed, Said: "w1: no lock\nw2: no lock"}, "the run failed: w1: no lock; w2: no lock"},
		{alone(), checker.Fact{Kind: checker.FactMissedHolders, FaultKind: "pause"}, "no pause hit a holder inside its section while another worker asked for the lock; one worker has nobody to compete with: run at least 2 (--concurrency 2)"},
		{leased(), checker.Fact{Kind: checker.FactIgnoredNothing}, `--ignore-failed-acquire had no effect, because no acquire failed: the servers must be silent for longer than a client waits, as with --nemesis pause:majority --pause 8s`},
		{leased(), checker.Fact{Kind: checker.FactRunFailed, Said: "docker is gone"}, "the run failed: docker is gone"},
		{leased(), checker.Fact{Kind: checker.FactRunFailed}, "the run failed"},
		{leased(), checker.Fact{Kind: checker.FactHistoryEnds}, "the history ends before the run did"},
		{leased(), checker.Fact{Kind: checker.FactClientFault, Said: "w1: wrong"}, "w1: wrong"},
		{leased(), checker.Fact{Kind: checker.FactUnknownProperty, Said: "speed"}, `there is no property "speed" to require`},
		{leased(), checker.Fact{Kind: checker.FactIllegalUnexplained, Keys: key}, "this is a bug in lockcheck, please report it: porcupine finds k0 illegal, but nothing explains it"},
		{leased(), checker.Fact{Kind: checker.FactLegalOverlap, Keys: key, Workers: both}, "this is a bug in lockcheck, please report it: porcupine accepts k0, although w1 and w2 held it at once before either lease could have run out"},
		{leased(), checker.Fact{Kind: checker.FactLegalConflict, Keys: key}, "this is a bug in lockcheck, please report it: porcupine accepts k0, although its operations cannot be put in order"},
		{leased(), checker.Fact{Kind: checker.FactOrderlyOverlap, Keys: key}, "this is a bug in lockcheck, please report it: the grants of k0 can be put in order, although two workers held it at once before either lease could have run out"},
		{leased(), checker.Fact{Kind: checker.FactUnheld, Keys: key, N: 2}, "this is a bug in lockcheck, please report it: the resource saw 2 workers in k0 at once, and no holds overlap"},
	} {
		seen[string(c.fact.Kind)] = true
		if got := c.p.fact(c.fact); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.fact.Kind, got, c.want)
		}
	}
	for kind, name := range kindsOfChecker(t, "FactKind") {
		if !seen[kind] && name != "FactRequired" { // FactRequired is part of another sentence, see TestRender
			t.Errorf("checker.%s has no sentence here", name)
		}
	}
}

// TestIncidents: each kind of incident has its sentence.
func TestIncidents(t *testing.T) {
	two, three := []string{"w1", "w2"}, []string{"w1", "w2", "w3"}
	healed := checker.Since{Event: checker.SinceHealed}
	seen := make(map[string]bool)
	for _, c := range []struct {
		p        presenter
		incident checker.Incident
		figures  checker.IncidentFigures
		want     string
	}{
		{leased(), checker.Incident{Kind: checker.KindOverlap, Workers: two, To: 9 * ms, Class: checker.DoubleGrant}, checker.IncidentFigures{Holder: checker.HolderHealthy}, "w1 and w2 both held k0 for 9 ms (w1 was healthy; both were within their validity)"},
		{leased(), checker.Incident{Kind: checker.KindOverlap, Workers: two, To: 9 * ms, Class: checker.UseAfterExpiry}, checker.IncidentFigures{Holder: checker.HolderPaused, Expired: 11 * time.Millisecond}, "w1 and w2 both held k0 for 9 ms (w1 was paused; its lease had run out 11 ms before)"},
		{connected(), checker.Incident{Kind: checker.KindOverlap, Workers: two, To: 9 * ms, Class: checker.UseAfterExpiry}, checker.IncidentFigures{Holder: checker.HolderHealthy, Expired: 11 * time.Millisecond}, "w1 and w2 both held k0 for 9 ms (w1 was healthy; its lock may have ended 11 ms before)"},
		{leased(), checker.Incident{Kind: checker.KindOverlap, Workers: two, Class: checker.UseAfterExpiry}, checker.IncidentFigures{Holder: checker.HolderCutOff}, "w1 and w2 both held k0 for a moment (w1 was cut off; its lease ran out just then)"},
		{semaphore(), checker.Incident{Kind: checker.KindOverlap, Workers: two, To: 9 * ms, Class: checker.Unclassified}, checker.IncidentFigures{Holder: checker.HolderHealthy}, "w1 and w2 were among more than 3 who held k0 for 9 ms (w1 was healthy; its lease is not known)"},
		{leased(), checker.Incident{Kind: checker.KindExpiredGrant, Workers: two[:1]}, checker.IncidentFigures{}, "w1 was granted k0, though the service no longer had the grant on record"},
		{leased(), checker.Incident{Kind: checker.KindWrongRelease, Workers: three}, checker.IncidentFigures{Length: time.Millisecond}, "the release of k0 by w1 succeeded although w2 had held it for 1 ms, and 1 other"},
		{leased(), checker.Incident{Kind: checker.KindWrongRenewal, Workers: two}, checker.IncidentFigures{Length: time.Millisecond}, "the renewal of k0 by w1 succeeded 1 ms after w2 had been granted the lock"},
		{leased(), checker.Incident{Kind: checker.KindUntrueLoss, Workers: two[:1]}, checker.IncidentFigures{Length: time.Millisecond}, "w1 was told that it had lost k0, yet its release succeeded 1 ms later, and nobody else had been granted the lock"},
		{leased(), checker.Incident{Kind: checker.KindIdleLock, Workers: two}, checker.IncidentFigures{Length: time.Millisecond}, "w1 released k0, and no worker was granted it for 1 ms, though one asked for it"},
		{leased(), checker.Incident{Kind: checker.KindIdleLock, Class: checker.ClassMissedWakeUp, Workers: two}, checker.IncidentFigures{Length: time.Millisecond}, "w1 released k0 while a worker was cut off; no worker was granted it for 1 ms that no fault excuses, though one asked for it"},
		{leased(), checker.Incident{Kind: checker.KindLateFailover, Workers: two}, checker.IncidentFigures{Length: time.Millisecond}, "w1 fell silent while it held k0; no other worker was granted it for 1 ms, though one asked and could reach the servers"},
		{leased(), checker.Incident{Kind: checker.KindStaleWrite, Workers: two}, checker.IncidentFigures{Length: time.Millisecond}, "the resource accepted a write to k0 from w1, 1 ms after w2 had been granted the lock and used it"},
		{leased(), checker.Incident{Kind: checker.KindUnlocked, Workers: two[:1]}, checker.IncidentFigures{}, "the resource accepted a write to k0 from w1, which had not been granted the lock"},
		{leased(), checker.Incident{Kind: checker.KindOverwritten, Workers: two, Element: 3, To: ms}, checker.IncidentFigures{Version: 1, Next: 2}, "update 3 of w1 to k0 (version 1) was overwritten 1 ms later by w2, whose version 2 was computed from version 0"},
		{leased(), checker.Incident{Kind: checker.KindLostUnexplained, Workers: two, Element: 3}, checker.IncidentFigures{Version: 1}, "update 3 of w1 to k0 (version 1) was acknowledged, but the final state lacks it; no accepted write explains the loss"},
		{leased(), checker.Incident{Kind: checker.KindVanished, Workers: two, Element: 3}, checker.IncidentFigures{Version: 1}, "update 3 of w1 to k0 (version 1) was committed, as the answers to its write and its release say, but the database has neither the update nor a record of it"},
		{leased(), checker.Incident{Kind: checker.KindCountedLess}, checker.IncidentFigures{N: 1, Of: 3, Missing: 2}, "k0 counts 1 after 3 increments; no write explains the loss of 2"},
		{leased(), checker.Incident{Kind: checker.KindDuplicated, Element: 3}, checker.IncidentFigures{N: 3}, "element 3 is in the final state of k0 3 times"},
		{leased(), checker.Incident{Kind: checker.KindPhantom, Element: 3}, checker.IncidentFigures{}, "element 3 is in the final state of k0, though no worker tried to write it"},
		{leased(), checker.Incident{Kind: checker.KindRefusedPhantom, Element: 3}, checker.IncidentFigures{}, "element 3 is in the final state of k0, though the resource refused it"},
		{leased(), checker.Incident{Kind: checker.KindCountedMore}, checker.IncidentFigures{N: 4, Missing: 2}, "k0 counts 4, 2 more than the workers tried to add"},
		{leased(), checker.Incident{Kind: checker.KindCountedRefused}, checker.IncidentFigures{N: 4, Missing: 2}, "k0 counts 4, 2 more than the workers tried to add without being refused"},
		{leased(), checker.Incident{Kind: checker.KindRepeatedJob, Workers: two, Element: 3, To: ms}, checker.IncidentFigures{Base: 5}, "job 3 of k0 was done by w1, and again 1 ms later by w2, which had read version 5"},
		{leased(), checker.Incident{Kind: checker.KindChangedRead, Workers: two}, checker.IncidentFigures{Next: 1}, "w1 read version 0 of k0 and then version 1, which w2 had written meanwhile"},
		{leased(), checker.Incident{Kind: checker.KindTokenLower, Workers: two}, checker.IncidentFigures{Tokens: []uint64{7, 5}}, "w2 got token 5 for k0, lower than w1's 7 before it"},
		{leased(), checker.Incident{Kind: checker.KindTokenSame, Workers: two}, checker.IncidentFigures{Tokens: []uint64{7, 7}}, "w2 got token 7 for k0, the same as w1's 7 before it"},
		{leased(), checker.Incident{Kind: checker.KindGrantedTwice, Workers: two}, checker.IncidentFigures{}, "the service let w2 have k0 before the grant of w1 could have ended"},
		{leased(), checker.Incident{Kind: checker.KindTokensContradict, Workers: two}, checker.IncidentFigures{Tokens: []uint64{7, 5}}, "the tokens of w1 and w2 for k0, 7 and 5, contradict the order in which they may have had it"},
		{leased(), checker.Incident{Kind: checker.KindEndedEarly, Workers: two}, checker.IncidentFigures{Length: time.Millisecond}, "the service no longer knew the lock of w1 on k0, 1 ms before it could have ended by itself"},
		{leased(), checker.Incident{Kind: checker.KindEndedNever, Workers: two}, checker.IncidentFigures{}, "the service no longer knew the lock of w1 on k0, which cannot have ended by itself"},
		{leased(), checker.Incident{Kind: checker.KindAnsweredBefore, Workers: two}, checker.IncidentFigures{}, "w2 was answered about the lock of w1 on k0 before w1 had asked for it"},
		{leased(), checker.Incident{Kind: checker.KindAnsweredAfter, Workers: two}, checker.IncidentFigures{}, "w2 was answered about the lock of w1 on k0 after the service had said that it was gone"},
		{leased(), checker.Incident{Kind: checker.KindHeldElsewhere, Workers: two}, checker.IncidentFigures{OtherKey: "k1"}, "w1 was refused k0 because w2 held it, but that grant is one of k1"},
		{leased(), checker.Incident{Kind: checker.KindStuckKey, To: 2e9}, checker.IncidentFigures{Since: healed}, "after the last fault was healed no worker could acquire k0 for 2 s, though no live worker held it"},
		{semaphore(), checker.Incident{Kind: checker.KindStuckKey, To: 2e9}, checker.IncidentFigures{Since: checker.Since{Event: checker.SinceStart}}, "no worker could acquire k0 for 2 s, though fewer than 3 live workers held it"},
		{leased(), checker.Incident{Kind: checker.KindNothingButErrors, Workers: two, To: 2e9}, checker.IncidentFigures{}, "w1 got nothing but errors for 2 s when it asked for the lock"},
	} {
		seen[string(c.incident.Kind)] = true
		c.incident.Key, c.incident.Figures = "k0", c.figures
		if got := c.p.incident(c.incident); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.incident.Kind, got, c.want)
		}
	}
	for kind, name := range kindsOfChecker(t, "IncidentKind") {
		if !seen[kind] {
			t.Errorf("checker.%s has no sentence here", name)
		}
	}
}

// TestExplanations: each cause has its sentence.
func TestExplanations(t *testing.T) {
	fault := checker.InForce{ID: "f1", Kind: history.Kill, Targets: []string{"n1", "n2", "n3", "n4"}, From: 20 * ms}
	other := checker.InForce{ID: "f2", Kind: history.Clock, From: 25 * ms}
	seen := make(map[string]bool)
	for _, c := range []struct {
		cause string
		e     checker.Explanation
		want  string // between the two grants
	}{
		{checker.CausePaused, checker.Explanation{LeaseEnd: 110 * ms, Stop: &checker.Stop{From: 20 * ms, Resumed: 148 * ms, To: 149 * ms}}, "w1 was stopped at 10 ms and continued between 138 ms and 139 ms; its lease may have run out from 100 ms on"},
		{checker.CausePaused, checker.Explanation{LeaseEnd: 110 * ms, Stop: &checker.Stop{From: 20 * ms, Resumed: 149*ms - 1, To: 149 * ms}}, "w1 was stopped at 10 ms and continued at 139 ms; its lease may have run out from 100 ms on"},
		{checker.CausePaused, checker.Explanation{LeaseEnd: 110 * ms, Stop: &checker.Stop{From: 20 * ms, To: 149 * ms}}, "w1 was stopped from 10 ms to 139 ms; its lease may have run out from 100 ms on"},
		{checker.CauseCutOff, checker.Explanation{Cut: &checker.Stop{From: 20 * ms, To: 149 * ms}}, "w1 was cut off from 10 ms to 139 ms"},
		{checker.CauseOutlasted, checker.Explanation{LeaseEnd: 110 * ms}, "its lease may have run out from 100 ms on, and w1 worked on"},
		{checker.CauseValidity, checker.Explanation{LeaseEnd: 110 * ms, ValidUntil: 160 * ms}, "w1 took the lock for valid until 150 ms, but its lease may have run out from 100 ms on"},
		{checker.CauseInFlight, checker.Explanation{HeldUntil: 30 * ms}, "w1 held the lock until 20 ms at the latest, and its write was still on its way then"},
		{checker.CauseInFlight, checker.Explanation{HeldUntil: 30 * ms, HeldBack: "f1"}, "w1 held the lock until 20 ms at the latest, and its write was still on its way then, held back by fault f1"},
		{checker.CauseExpiredGrant, checker.Explanation{}, "the service no longer had the claim of one of the two on record when its grant arrived"},
		{checker.CauseReleasedByOther, checker.Explanation{Releaser: &checker.Granted{Worker: "w3", At: 30 * ms}}, "w3 released the lock at 20 ms, though it was not its own"},
		{checker.CauseReleasedByOther, checker.Explanation{Releaser: &checker.Granted{Worker: "w3", At: 30 * ms, Command: "DEL"}}, "w3, which did not hold the lock, removed its key by DEL, as the service showed at 20 ms"},
		{checker.CauseRenewedByOther, checker.Explanation{Renewal: &checker.Renewal{Asked: 30 * ms, Answered: 31 * ms, LeaseEnd: 20 * ms}}, "its lease may have run out from 10 ms on, yet its renewal, asked for at 20 ms, succeeded at 21 ms"},
		{checker.CauseUnrenewed, checker.Explanation{Renewal: &checker.Renewal{Asked: 15 * ms, Answered: 16 * ms}, LeaseEnd: 115 * ms}, "the last answered renewal of its session was sent at 5 ms; its lease may have run out from 105 ms on"},
		{checker.CauseLateRelease, checker.Explanation{Earlier: &checker.Past{Asked: 15 * ms}}, "w1 had sent a release at 5 ms that got no answer, and was granted the lock again; that release must have arrived later"},
		{checker.CauseClock, checker.Explanation{InForce: []checker.InForce{other}}, "that grant cannot have ended by itself at all, but fault f2 (clock) was in force from 15 ms"},
		{checker.CauseClock, checker.Explanation{LeaseEnd: 110 * ms}, "that grant cannot have ended by itself before 100 ms, but the clocks of the workers differed from the start (lock option clocks-apart)"},
		{checker.CauseServerLost, checker.Explanation{InForce: []checker.InForce{fault, other}}, "that grant cannot have ended by itself at all, but fault f1 (kill of n1, n2, n3 and 1 more) was in force from 10 ms, and fault f2 (clock) was in force from 15 ms"},
		{checker.CauseServerLost, checker.Explanation{InForce: []checker.InForce{other}, Connected: true}, "the lock lasted as long as its connection, and fault f2 (clock) was in force from 15 ms"},
		{checker.CauseServerFault, checker.Explanation{InForce: []checker.InForce{other}}, "that grant cannot have ended by itself at all, but fault f2 (clock) was in force from 15 ms"},
		{checker.CauseTwice, checker.Explanation{LeaseEnd: 110 * ms, Record: &checker.Record{}}, "nothing could have ended that grant before 100 ms; by its own record the service had that claim to the end"},
		{checker.CauseTwice, checker.Explanation{Record: &checker.Record{Dropped: 30 * ms}}, "nothing could have ended that grant at all; by its own record the service had dropped that claim by 20 ms"},
		{checker.CauseUnexplained, checker.Explanation{Recovering: &checker.Recovering{Fault: other, Ago: 4 * time.Millisecond}, Between: &checker.Past{Granted: &checker.Granted{Worker: "w4", Grant: "d"}, Fate: checker.FateGaveUp, At: 30 * ms}, Record: &checker.Record{Dropped: 30 * ms, Late: true}},
			"the history does not show why another worker was granted the lock; fault f2 (clock) had ended 4 ms before w1 asked for the lock, and servers may take 50 ms to recover; " +
				"between the two grants w4 gave up its attempt d at 20 ms; the service was seen to drop that claim at 20 ms"},
		{checker.CauseTwice, checker.Explanation{Between: &checker.Past{Granted: &checker.Granted{Worker: "w4", Grant: "d", At: 5 * ms}, Fate: checker.FateReleased, Asked: 30 * ms, At: 31 * ms}},
			"nothing could have ended that grant at all; between the two grants w4 released its grant d at 20 ms, which the service acknowledged at 21 ms"},
	} {
		seen[c.cause] = true
		c.e.Key, c.e.Holder, c.e.Next = "k0", checker.Granted{Worker: "w1", At: 11 * ms, Token: 5}, checker.Granted{Worker: "w2", At: 121 * ms}
		want := "w1 was granted k0 at 1 ms with token 5; " + c.want + "; w2 was granted the lock at 111 ms"
		if got := leased().why(checker.Incident{Cause: c.cause, Explanation: &c.e}); got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.cause, got, want)
		}
	}
	late := checker.Explanation{Key: "k0", LeaseEnd: 110 * ms, Holder: checker.Granted{Worker: "w1", At: 130 * ms}, Next: checker.Granted{Worker: "w2", At: 121 * ms, Token: 6}}
	if got := leased().explanation(checker.CauseOutlasted, late); got != "w1 was granted k0 at 120 ms, by an answer that came late; its lease may have run out from 100 ms on, and w1 worked on; w2 was granted the lock at 111 ms with token 6" {
		t.Error(got)
	}
	for unknown, how := range map[bool]string{false: "failed", true: "ended without a known outcome"} {
		e := checker.Explanation{Key: "k0", Unlocked: &checker.Unlocked{Worker: "w1", Asked: 20 * ms, Answered: 30 * ms, Unknown: unknown}}
		want := "the acquire of k0 by w1, begun at 10 ms, " + how + " at 20 ms, and w1 went on all the same"
		if got := leased().why(checker.Incident{Cause: checker.CauseUnlocked, Explanation: &e}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, c := range checker.Causes() {
		if !seen[c.Name] && c.Name != checker.CauseUnlocked {
			t.Errorf("%s has no sentence here", c.Name)
		}
		if Cause(c.Name) == "" {
			t.Errorf("%s is not explained", c.Name)
		}
	}
	if got := leased().why(checker.Incident{}); got != "" {
		t.Errorf("without a cause: %s", got)
	}
}

// TestLastHolds: each fate of the last hold has its sentence, and so has each reason why no worker could
// acquire the lock afterwards.
func TestLastHolds(t *testing.T) {
	granted := &checker.Granted{Worker: "w1", Grant: "a", At: 11 * ms, Token: 5}
	unknown := &checker.Granted{Worker: "w4", Grant: "d"}
	after := func(since checker.Past) checker.LastHold {
		return checker.LastHold{Past: checker.Past{Granted: granted, Fate: checker.FateNotReleased}, Since: &since}
	}
	seen := make(map[string]bool)
	for _, c := range []struct {
		hold checker.LastHold
		want string
	}{
		{checker.LastHold{}, "no worker had been granted k0 before"},
		{checker.LastHold{Past: checker.Past{Granted: granted, Fate: checker.FateReleased, Asked: 20 * ms, At: 21 * ms}}, "w1 released it at 10 ms, which the service acknowledged at 11 ms"},
		{checker.LastHold{Past: checker.Past{Granted: granted, Fate: checker.FateGone, At: 21 * ms}}, "w1 tried to release it, and was refused at 11 ms: it no longer had the lock"},
		{checker.LastHold{Past: checker.Past{Granted: granted, Fate: checker.FateUnanswered, Asked: 20 * ms}}, "w1 released it at 10 ms, and the outcome of that is unknown"},
		{checker.LastHold{Past: checker.Past{Granted: granted, Fate: checker.FateKilled, At: 21 * ms}}, "w1 was killed at 11 ms and did not release it"},
		{checker.LastHold{Past: checker.Past{Granted: granted, Fate: checker.FateNotReleased}}, "w1 never released it"},
		{after(checker.Past{Granted: unknown, Fate: checker.FateGaveUp, At: 21 * ms}), "w1 never released it; before that wait w4 gave up its attempt d at 11 ms"},
		{after(checker.Past{Granted: granted, Fate: checker.FateNamed, At: 21 * ms}), "w1 never released it; meanwhile the service named w1 (a) as the holder, at 11 ms"},
		{after(checker.Past{Granted: unknown, Fate: checker.FateNamed, At: 21 * ms}), "w1 never released it; meanwhile the service named w4 (d), which was not told of a grant, as the holder, at 11 ms"},
		{after(checker.Past{Granted: &checker.Granted{Worker: "w4", Grant: "d", RefusedByItself: true}, Fate: checker.FateNamed, At: 21 * ms}), "w1 never released it; meanwhile the service named w4 (d), whose acquire it had refused although d had the lock, as the holder, at 11 ms"},
		{after(checker.Past{Granted: &checker.Granted{Grant: "x"}, Fate: checker.FateNamed, At: 21 * ms}), "w1 never released it; meanwhile the service named x, which is no attempt of a worker, as the holder, at 11 ms"},
		{after(checker.Past{Granted: &checker.Granted{Token: 7}, Fate: checker.FateClaimed, At: 21 * ms}), "w1 never released it; meanwhile a claim with token 7, of which no worker was told, was first in the queue of the service, at 11 ms"},
	} {
		seen[string(c.hold.Fate)] = true
		if c.hold.Since != nil {
			seen[string(c.hold.Since.Fate)] = true
		}
		want := c.want
		if c.hold.Granted != nil {
			want = "k0 was last granted to w1 (a), at 1 ms with token 5; " + want
		}
		if got := leased().why(checker.Incident{Key: "k0", LastHold: &c.hold}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for kind, name := range kindsOfChecker(t, "Fate") {
		if !seen[kind] {
			t.Errorf("checker.%s has no sentence here", name)
		}
	}
}

// TestQuantities: each quantity has its own words.
func TestQuantities(t *testing.T) {
	for kind, name := range kindsOfChecker(t, "Quantity") {
		if words := Quantity(checker.Quantity(kind)); words == "" || words == kind {
			t.Errorf("checker.%s: %q", name, words)
		}
	}
}

// TestMissed: each reason for which a fault does not count has its words.
func TestMissed(t *testing.T) {
	words := make(map[string]bool)
	for kind, name := range kindsOfChecker(t, "MissReason") {
		text := missed(checker.FaultCoverage{Missed: checker.MissReason(kind), Actor: "w1"})
		if text == "" || words[text] {
			t.Errorf("checker.%s: %q", name, text)
		}
		words[text] = true
	}
	for _, c := range []struct {
		fault checker.FaultCoverage
		want  string
	}{
		{checker.FaultCoverage{}, ""},
		{checker.FaultCoverage{Missed: checker.MissUnproven, Said: "w1 runs"}, "not proven: w1 runs"},
		{checker.FaultCoverage{Missed: checker.MissGranted, Actor: "w1"}, "w1 had the lock again"},
	} {
		if got := missed(c.fault); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestMeanings: every term that a finding can use is explained, and no other term is.
func TestMeanings(t *testing.T) {
	for _, p := range checker.Properties() {
		if Property(p) == "" {
			t.Errorf("property %s is not explained", p)
		}
	}
	for _, v := range append(checker.Verdicts(), checker.NotApplicable) {
		if Verdict(v) == "" {
			t.Errorf("verdict %s is not explained", v)
		}
	}
	if Property("moon")+Verdict("moon")+Cause("moon") != "" {
		t.Error("a word that does not exist is explained")
	}
}

func TestInterval(t *testing.T) {
	for _, c := range []struct {
		interval checker.LossInterval
		want     string
	}{
		{checker.LossInterval{LostHigh: 1}, "no 95 % interval"},
		{checker.LossInterval{LostHigh: 1, LostOver: checker.OverFaults, LostUnits: 1}, "no 95 % interval, which takes more than 1 fault"},
		{checker.LossInterval{LostHigh: 0.95, LostOver: checker.OverRuns, LostUnits: 2}, "at most 0.95, 95 % interval over 2 runs"},
		{checker.LossInterval{LostLow: 0.16, LostHigh: 0.4, LostOver: checker.OverPeriods, LostUnits: 20}, "0.16 to 0.4, 95 % interval over 20 periods"},
		{checker.LossInterval{LostLow: 0.1, LostHigh: 0.2}, "0.1 to 0.2, 95 % interval"},
	} {
		if got := Interval(c.interval); got != c.want {
			t.Errorf("%+v: %q, want %q", c.interval, got, c.want)
		}
	}
}

func TestText(t *testing.T) {
	for ns, want := range map[time.Duration]string{
		1: "1 ns", 1500: "1.5 µs", 2_000_000: "2 ms", 1_204_000_000: "1.204 s", 90e9: "90 s", 900_000_000: "900 ms", 0: "0 ns",
	} {
		if got := length(ns); got != want {
			t.Errorf("%d: %q, want %q", ns, got, want)
		}
	}
	if got := causes(map[string]int64{"a": 1, "b": 3}); got != "cause: b (3), a (1)" {
		t.Error(got)
	}
	if got := causes(map[string]int64{"a": 2}); got != "cause: a" {
		t.Error(got)
	}
}

// TestRender: the sentence about a run explains its verdict.
func TestRender(t *testing.T) {
	finding := func(p checker.Property, v checker.Verdict, required bool, facts ...checker.Fact) checker.Finding {
		return checker.Finding{Property: p, Verdict: v, Required: required, Total: 1, Facts: facts}
	}
	tolerated := finding(checker.MutualExclusion, checker.Violation, false, checker.Fact{Kind: checker.FactOverlaps, N: 1})
	tolerated.Tolerated, tolerated.Causes = true, map[string]int64{checker.CausePaused: 1}
	overlap := finding(checker.MutualExclusion, checker.Violation, true, checker.Fact{Kind: checker.FactOverlaps, N: 1})
	twice := overlap
	twice.Total = 2
	stale := finding(checker.NoStaleWrite, checker.Violation, true, checker.Fact{Kind: checker.FactStaleWrites, N: 2})
	stuck := finding(checker.Liveness, checker.Violation, true, checker.Fact{Kind: checker.FactStuck, N: 1, Limit: time.Second})
	stuck.Violations = []checker.Incident{{Kind: checker.KindStuckKey, Key: "k0", To: 2e9}}
	fence := checker.FenceSummary{RefusedWrites: 1}
	overlaps := checker.OverlapSummary{UsesAfterExpiry: 1}
	updates := checker.UpdateSummary{Acknowledged: 1}
	for _, c := range []struct {
		name    string
		header  history.Header
		results checker.Results
		want    string
	}{
		{"violation", history.Header{}, checker.Results{Verdict: checker.Violation, Incidents: 1, Findings: []checker.Finding{overlap}}, "1 incident: two workers once held the lock at the same time."},
		{"two of them", history.Header{Permits: 2}, checker.Results{Verdict: checker.Violation, Incidents: 2, Findings: []checker.Finding{twice, stale}}, "2 incidents: more than 2 workers held the lock at once twice; 2 writes were accepted from a holder that a later one had replaced."},
		{"stuck", history.Header{}, checker.Results{Verdict: checker.Violation, Findings: []checker.Finding{stuck}}, "No worker could acquire k0 for 2 s, though no live worker held it."},
		{"not linearizable", history.Header{}, checker.Results{Verdict: checker.Violation, Findings: []checker.Finding{finding(checker.Linearizability, checker.Violation, true, checker.Fact{Kind: checker.FactNotLinearizable, Keys: []string{"k0"}}, checker.Fact{Kind: checker.FactSilent, Keys: []string{"k0"}})}},
			"No mutex could have given these answers for k0."},
		{"lost", history.Header{}, checker.Results{Verdict: checker.Violation, Updates: checker.UpdateSummary{Lost: 1, Acknowledged: 1}, Findings: []checker.Finding{finding(checker.NoLostUpdate, checker.Violation, true, checker.Fact{Kind: checker.FactUpdatesWrong})}}, "1 of 1 acknowledged update was lost."},
		{"tolerated", history.Header{Guard: "fence"}, checker.Results{Verdict: checker.Valid, Overlaps: overlaps, Updates: updates, Findings: []checker.Finding{tolerated}}, "No violation: 1 overlap; 1 update under the lock, none lost; no faults were injected."},
		{"refused", history.Header{Guard: "fence"}, checker.Results{Verdict: checker.Valid, Overlaps: overlaps, Updates: updates, Fence: fence, Findings: []checker.Finding{tolerated}}, "No violation: 1 overlap; the fence refused 1 stale access; 1 update under the lock, none lost; no faults were injected."},
		{"asked in vain", history.Header{Guard: history.GuardAsk}, checker.Results{Verdict: checker.Valid, Updates: updates, Fence: checker.FenceSummary{RefusedReads: 1, RefusedWrites: 1, Unanswered: 1}},
			"No violation: the check with the service refused 1 stale access and 1 access because the lock service did not answer; 1 update under the lock, none lost; no faults were injected."},
		{"no lock", history.Header{Lock: history.LockNone, Guard: history.GuardVersions}, checker.Results{Verdict: checker.Valid, Overlaps: overlaps, Updates: updates, Fence: fence, Findings: []checker.Finding{tolerated}}, "No violation: the version check refused 1 stale access; 1 update without a lock, none lost; no faults were injected."},
		{"nothing written", history.Header{Workload: history.WorkloadMutex}, checker.Results{Verdict: checker.Valid, Measures: checker.Measures{Work: 7}}, "No violation: 7 holds of the lock; no faults were injected."},
		{"faults", history.Header{}, checker.Results{Verdict: checker.Valid, Faults: []checker.FaultCoverage{{Kind: history.Clock, Targets: []string{"n1"}, Applied: true, Proven: true, Exercised: true}}}, "No violation: 0 updates under the lock, none lost; 1 of 1 clock fault proven and exercised."},
		{"undecided", history.Header{}, checker.Results{Verdict: checker.Undecided, Findings: []checker.Finding{finding(checker.FencingOrder, checker.Undecided, true, checker.Fact{Kind: checker.FactRequired}, checker.Fact{Kind: checker.FactNoTokens}),
			finding(checker.NoExpiredGrant, checker.Undecided, false, checker.Fact{Kind: checker.FactNeverHeld}), finding(checker.Assumptions, checker.Undecided, true, checker.Fact{Kind: checker.FactInterrupted})}},
			"The run was interrupted before its end; run it again for a verdict; fencing-order was required, but this lock has no tokens."},
		{"broken", history.Header{}, checker.Results{Verdict: checker.Broken, Findings: []checker.Finding{finding(checker.Assumptions, checker.Broken, true, checker.Fact{Kind: checker.FactRunFailed, Said: "docker is gone"})}}, "The run failed: docker is gone."},
	} {
		if Render(&c.results, c.header); c.results.Sentence != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.results.Sentence, c.want)
		}
	}
	r := checker.Results{
		Verdict: checker.Valid, Overlaps: checker.OverlapSummary{UsesAfterExpiry: 1, Longest: time.Second}, Findings: []checker.Finding{tolerated},
		Faults: []checker.FaultCoverage{{Missed: checker.MissNoPacket}},
	}
	r.Findings[0].Violations = []checker.Incident{{Kind: checker.KindExpiredGrant, Key: "k0", Workers: []string{"w1"}, Cause: checker.CauseUnlocked, Explanation: &checker.Explanation{Key: "k0", Unlocked: &checker.Unlocked{Worker: "w1"}}}}
	Render(&r, history.Header{})
	f := r.Findings[0]
	if f.Summary != "1 overlap of holders (1 use after expiry); longest 1 s; cause: lease ran out while its holder was paused" ||
		!strings.HasPrefix(f.Violations[0].What, "w1 was granted k0") || !strings.HasPrefix(f.Violations[0].Why, "the acquire of k0 by w1") || r.Faults[0].Reason != "it met no packet" {
		t.Errorf("%+v", r)
	}
}
