package guide

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// Need is what a user needs a lock for.
type Need string

const (
	NeedData     Need = "data"
	NeedOnce     Need = "once"
	NeedWaste    Need = "waste"
	NeedFailover Need = "failover"
	NeedInfra    Need = "infra"
	NeedLong     Need = "long"
)

// Needs lists all needs in the order of the guide.
func Needs() []Need { return []Need{NeedData, NeedOnce, NeedWaste, NeedFailover, NeedInfra, NeedLong} }

// Title is the need as a heading.
func (n Need) Title() string {
	return map[Need]string{
		NeedData: "Data must never be lost", NeedOnce: "A job must never run twice", NeedWaste: "Wasted work is fine", NeedFailover: "Failover must be fast",
		NeedInfra: "No new infrastructure", NeedLong: "Work runs longer than the lease",
	}[n]
}

// Query is a user's question.
type Query struct {
	Need Need
	// Have lists the products that the user has, see Products; nil for any. With NeedInfra, nil means
	// databases.
	Have []string
	Work time.Duration // the longest that the work takes; 0 if unknown
	// Failover is the time within which another worker must get the lock of a holder whose process died; 0
	// for any.
	Failover time.Duration
	// External: the work has effects elsewhere that no database of the user can roll back.
	External bool
}

// usualFailover and usualWork stand in for figures that the query lacks.
const (
	usualFailover = 10 * time.Second
	usualWork     = 10 * time.Minute
	// longTransaction is how long a transaction should stay open at most: it holds back vacuum, and servers
	// end it.
	longTransaction = time.Minute
	// shortWork is work that any lease outlasts.
	shortWork = time.Second
)

// Rule says in one sentence how Decide ranks.
const Rule = "Ranked by, in this order: fewest warnings for these figures; the guard with which a program can do least wrong; fewest kinds of fault under which the service itself lets two have the lock, by mechanism or in runs; fewest usual faults never tried; fewest servers; the fastest acquire. For wasted work: warnings, servers, acquire. What a mechanism or a run contradicts is out."

// Choice is a family as an answer, represented by its best lock.
type Choice struct {
	Family      Family
	Lock, Guard string
	Version     string // of the servers in the newest runs
	// Against says what rules the choice out, and AgainstShown is the run that shows it; "" and nil for an
	// answer.
	Against      string
	AgainstShown *Shown
	// Faulty lists the kinds of fault under which the lock itself failed.
	Faulty []Shown
	// Alone is how the lock breaks without the guard; nil if no run shows that.
	Alone *Shown
	// Kept sums up the runs behind the guard.
	Kept     Kept
	Warnings []string
	Notes    []string // settings to make
	Untried  []string // usual faults without a conclusive run
	Others   []string // other locks of the family that are answers too

	servers int
	acquire time.Duration
	alone   map[string]Cell // without a guard, by fault
	// presumed lists how the service failed other locks of the family, see presume.
	presumed []Shown
}

// Shown is a measurement: what broke in k of n runs, of which version, and the command that shows it.
type Shown struct {
	Fault string // including the other faults that it needs
	Main  string // without the other faults
	Cell  string // lock and fault, in the form that Why takes
	Group
}

// Kept sums up runs behind a guard.
type Kept struct {
	Runs, Updates, Overlapped int64
	// Lost counts the Updates that were lost. Violations counts the Runs with a violation, of one of the
	// properties Violated.
	Lost, Violations int64
	Violated         []string
	Locks            []string // the locks of these runs, for a guard that works with any lock
}

// Decision is the answer to a query: the choices in order, and the locks that must not be chosen.
type Decision struct {
	Query
	Choices, Out []Choice
}

// Decide ranks the families by Rule.
func (e Evidence) Decide(q Query) Decision {
	if q.Need == NeedFailover && q.Failover == 0 {
		q.Failover = usualFailover
	}
	if q.Need == NeedLong && q.Work == 0 {
		q.Work = usualWork
	}
	d := Decision{Query: q}
	for _, family := range Families() {
		var fit, unfit []Choice
		for _, lock := range family.Locks {
			if !q.hasServersOf(lock) {
				continue
			}
			if c := e.choice(q, family, lock); c.Against == "" {
				fit = append(fit, c)
			} else {
				unfit = append(unfit, c)
			}
		}
		presume(fit)
		slices.SortStableFunc(fit, q.rank)
		d.Choices = append(d.Choices, firstPerProduct(fit)...)
		if len(fit) == 0 && len(unfit) > 0 {
			d.Out = append(d.Out, unfit[0])
		}
	}
	slices.SortStableFunc(d.Choices, q.rank)
	return d
}

// presume counts the faults under which the service failed one lock of a family against the others on the same
// servers, unless these held more often than chance explains. Otherwise the lock with the fewest trials would be
// recommended.
func presume(family []Choice) {
	for i := range family {
		c := &family[i]
		for _, other := range family {
			if other.product() != c.product() {
				continue
			}
			for _, s := range other.Faulty {
				cell := c.alone[s.Main]
				if better := cell.State == Held && cell.Bound < s.Low; cell.State != Broken && !better {
					c.presumed = append(c.presumed, s)
				}
			}
		}
	}
}

// firstPerProduct keeps the first choice of a family for each product and guard, with the names of the others. Each
// product counts, because a user without PostgreSQL may have MariaDB, whose lock ends in the same way.
func firstPerProduct(ranked []Choice) (all []Choice) {
	for _, c := range ranked {
		i := slices.IndexFunc(all, func(first Choice) bool { return first.Guard == c.Guard && first.product() == c.product() })
		if i >= 0 {
			all[i].Others = append(all[i].Others, c.Lock)
		} else {
			all = append(all, c)
		}
	}
	return all
}

func (c Choice) product() string {
	info, _ := infoOf(c.Lock)
	return productOf(info.Servers)
}

// hasServersOf says whether the user has the servers of a lock.
func (q Query) hasServersOf(lock string) bool {
	info, _ := infoOf(lock)
	return q.hasProduct(productOf(info.Servers))
}

func (q Query) hasProduct(product string) bool {
	have := q.Have
	if q.Need == NeedInfra && have == nil {
		have = []string{"postgres", "mariadb", noServers}
	}
	return have == nil || slices.Contains(have, product)
}

// rank implements Rule.
func (q Query) rank(a, b Choice) int {
	last := cmp.Or(cmp.Compare(a.servers, b.servers), cmp.Compare(a.acquire, b.acquire), cmp.Compare(a.Lock, b.Lock))
	if q.Need == NeedWaste {
		return cmp.Or(cmp.Compare(len(a.Warnings), len(b.Warnings)), last)
	}
	return cmp.Or(
		cmp.Compare(len(a.Warnings), len(b.Warnings)),
		cmp.Compare(a.misuseRank(), b.misuseRank()),
		cmp.Compare(a.faultyKinds(), b.faultyKinds()),
		cmp.Compare(len(a.Untried), len(b.Untried)),
		last,
	)
}

// faultyKinds counts the kinds of fault in Faulty, in presumed and in the mechanism of the family. Faults that
// break the lock only together count once.
func (c Choice) faultyKinds() int {
	faults := slices.Clone(c.Family.GivesWay)
	for _, s := range slices.Concat(c.Faulty, c.presumed) {
		counted := func(fault string) bool {
			kind, whom := splitFault(fault)
			return slices.Contains(faults, kind+":"+whom)
		}
		if !counted(s.Main) && !slices.ContainsFunc(s.Needed, counted) {
			kind, whom := splitFault(s.Main)
			faults = append(faults, kind+":"+whom)
		}
	}
	return len(faults)
}

// misuseRank ranks how much a program can do wrong: least if the data commits with the lock, otherwise by guard.
func (c Choice) misuseRank() int {
	if c.Family.End == EndsTransaction {
		return -1
	}
	return slices.IndexFunc(guardTexts(), func(g guardText) bool { return g.name == c.Guard })
}

// choice judges one lock.
func (e Evidence) choice(q Query, family Family, lock string) Choice {
	info, _ := infoOf(lock)
	all := e
	e = e.currentRuns(lock)
	c := Choice{Family: family, Lock: lock, Guard: q.guard(family, info), Version: e.newest(lock), acquire: usualWork}
	if found, err := lockfile.Find(lock); err == nil && found.Servers.Nodes > 0 && info.Servers != noServers {
		c.servers = found.Servers.Nodes
	}
	if a := e.uncontendedAcquire(lock); a != nil {
		c.acquire = a.P50
	}
	alone := make(map[string]Cell) // by fault; each cell takes a while and is needed often
	for _, fault := range append(e.faultsOf(lock, history.GuardNone), Normal("crash:holder")) {
		if _, there := alone[fault]; !there {
			alone[fault] = e.Cell(lock, fault, history.GuardNone)
		}
	}
	alone[None] = e.Cell(lock, None, history.GuardNone)
	c.alone = alone
	c.Faulty, c.Alone = breaksAlone(alone)
	c.Untried = untried(alone)
	c.Kept = e.keptBehind(guardNamed(c.Guard))
	if guard := guardNamed(c.Guard); guard.alone {
		c.Kept = all.keptBehind(guard)
	}
	e.ruleOut(&c, q, info, alone)
	q.warn(&c, info, e)
	return c
}

// guard is the guard that leaves a program the least to do wrong, among those that make the data safe with
// the lock.
func (q Query) guard(family Family, info clients.Info) string {
	switch {
	case q.Need == NeedWaste:
		return history.GuardNone
	case q.External, q.Need == NeedOnce: // no lock knows that a job was done if its holder died before reporting it
		return history.GuardIdempotency
	case info.Data:
		return history.GuardDatabase
	case family.TokenRestarts == "" && workloads.Fence.Lacks(info) == "":
		return history.GuardFence
	}
	return history.GuardVersions
}

// ruleOut says what rules the choice out.
func (e Evidence) ruleOut(c *Choice, q Query, info clients.Info, alone map[string]Cell) {
	c.AgainstShown = orphaned(alone)
	switch free := info.Effective(max(info.MinTTL, info.Delivered.MinTTL), info.LockDelay) + info.Grace; {
	case c.Family.End == EndsNever || c.AgainstShown != nil:
		c.Against = "a holder that dies keeps it for ever"
		return
	case q.Failover > 0 && info.TTL > 0 && free > q.Failover:
		c.Against = fmt.Sprintf("with its shortest lease it is free after up to %s", free)
		return
	}
	for _, fault := range e.faultsBehind(c.Guard) {
		if cell := e.Cell(c.Lock, fault, c.Guard); cell.costsData() {
			worst, _ := cell.Worst()
			c.Against, c.AgainstShown = "data was lost behind this guard", &Shown{worst.faultNames(fault), fault, c.Lock + "/" + fault + "/" + c.Guard, worst}
			return
		}
	}
	groups := alone[None].Groups
	if i := slices.IndexFunc(groups, func(g Group) bool { return g.Broke > 0 && len(g.Setup) == 0 }); i >= 0 {
		c.Against, c.AgainstShown = "it broke without any fault", &Shown{None, None, c.Lock + "/" + None, groups[i]}
	}
}

// faultsBehind lists the faults of runs behind a guard, beginning with None. It is empty for no guard, where
// a loss is to be expected.
func (e Evidence) faultsBehind(guard string) []string {
	if guard == history.GuardNone {
		return nil
	}
	all := []string{None}
	for _, r := range e {
		for _, f := range r.Faults {
			if r.Guard == guard && !slices.Contains(all, f.Name) {
				all = append(all, f.Name)
			}
		}
	}
	return all
}

// warn adds warnings and notes that follow from the figures of the query.
func (q Query) warn(c *Choice, info clients.Info, e Evidence) {
	if c.Family.End == EndsTransaction && q.Work > longTransaction {
		c.Warnings = append(c.Warnings, fmt.Sprintf("a transaction open for %s holds back vacuum, and servers may end it", short(q.Work)))
	}
	if c.Family.End == EndsTransaction && q.External {
		c.Warnings = append(c.Warnings, "a transaction stays open while another service is called")
	}
	if c.Family.End == EndsLease && (q.Need == NeedLong || q.Work > shortWork) {
		note := fmt.Sprintf("renew the lease, or ask for one longer than %s", short(q.Work))
		if q.Need == NeedLong {
			c.Warnings = append(c.Warnings, note)
		} else {
			c.Notes = append(c.Notes, note)
		}
	}
	if c.Family.TokenRestarts != "" && c.Guard == history.GuardVersions {
		c.Notes = append(c.Notes, "do not fence by its token: "+c.Family.TokenRestarts)
	}
	if c.Family.Condition != "" {
		c.Notes = append(c.Notes, c.Family.Condition)
	}
	if q.Failover > 0 {
		c.Notes = append(c.Notes, q.failover(info, e.deaths(c.Lock)))
	}
}

// failover says which lease to set, and what runs measured. A lock passes on a little after its lease, so the
// lease that a test happened to use decides nothing.
func (q Query) failover(info clients.Info, d deaths) string {
	measured := ""
	if d.holders > 0 {
		measured = fmt.Sprintf(" (measured: at most %s past the lease, %s)", short(d.beyond), manyHolders(d.holders))
		if short(d.beyond) == "0s" {
			measured = fmt.Sprintf(" (measured: never later, %s)", manyHolders(d.holders))
		}
	}
	if info.TTL == 0 {
		return "free as soon as the holder's process dies" + measured + "; if its machine dies, when TCP keep-alive gives up: set it below " + short(q.Failover)
	}
	lease := q.Failover - info.LockDelay - info.Grace
	if info.Expiry > 0 {
		lease = time.Duration(float64(lease) / info.Expiry)
	}
	return fmt.Sprintf("lease of at most %s: another worker takes over within %s%s", short(lease.Truncate(100*time.Millisecond)), takeover(info), measured)
}

// takeover says how long the lock of a silent holder stays locked.
func takeover(info clients.Info) string {
	text := "a lease"
	if info.Expiry > 1 {
		text = fmt.Sprintf("%g leases", info.Expiry)
	}
	if more := info.LockDelay + info.Grace; more > 0 {
		text += " and " + short(more)
	}
	return text
}

// currentRuns are the runs of a lock on the newest release line of its servers. Runs of older lines are no
// evidence for a user who installs the newest.
func (e Evidence) currentRuns(lock string) Evidence {
	line := releaseLine(e.newest(lock))
	return slices.DeleteFunc(slices.Clone(e), func(r Run) bool { return r.Lock != lock || releaseLine(r.Version()) != line })
}

// newest is the newest version of a lock's servers among its runs.
func (e Evidence) newest(lock string) string {
	newest := ""
	for _, r := range e {
		if r.Lock == lock && slices.Compare(versionNumbers(r.Version()), versionNumbers(newest)) > 0 {
			newest = r.Version()
		}
	}
	return newest
}

// versionNumbers splits a version into its numbers, the most significant first; nil for no version.
func versionNumbers(version string) (all []int) {
	_, version, _ = strings.Cut(version, " ")
	for _, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}

func (r Run) day() string { return r.When[:min(10, len(r.When))] }

// breaksAlone lists the kinds of fault under which the lock itself failed, and how the lock breaks without a
// guard. Reproductions come first, then claims, then random faults.
func breaksAlone(cells map[string]Cell) (faulty []Shown, alone *Shown) {
	var all []Shown
	for _, fault := range slices.Sorted(maps.Keys(cells)) {
		for _, g := range cells[fault].Groups {
			if g.Broke == 0 || fault == LongWork || fault == None && len(g.Setup) > 0 {
				continue
			}
			s := Shown{g.faultNames(cmp.Or(g.Case, fault)), fault, cells[fault].Lock + "/" + fault, g}
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b Shown) int {
		return cmp.Or(cmp.Compare(a.showsRank(), b.showsRank()), cmp.Compare(boolToInt(a.Class == ByToken), boolToInt(b.Class == ByToken)), cmp.Compare(b.Low, a.Low))
	})
	for _, s := range all {
		same := func(other Shown) bool { return other.Fault == s.Fault }
		if (s.Class == ByLock || s.Class == Stuck) && !slices.ContainsFunc(faulty, same) {
			faulty = append(faulty, s)
		}
	}
	if len(all) > 0 {
		alone = &all[0]
	}
	return faulty, alone
}

// showsRank ranks how surely the command of a group shows the break. Runs without a guard come first.
func (g Group) showsRank() int {
	kind, _, _ := strings.Cut(g.Experiment, "/")
	kinds := []string{"repro", "claim", "lock", "attack", ""}
	return slices.Index(kinds, kind) + boolToInt(strings.HasSuffix(g.Experiment, "/control")) + len(kinds)*boolToInt(g.Runs[0].refused)
}

// keptBehind sums up the runs behind a guard.
func (e Evidence) keptBehind(guard guardText) (k Kept) {
	behind := slices.DeleteFunc(slices.Clone(e), func(r Run) bool {
		return r.Guard != guard.name || r.Verdict != checker.Valid && r.Verdict != checker.Violation
	})
	for _, r := range behind.withoutDuplicates() {
		k.Runs += r.runsWithVerdict()
		if r.Verdict == checker.Violation {
			k.Violations += r.runsWithVerdict()
			for _, p := range r.Violated {
				if !slices.Contains(k.Violated, string(p)) {
					k.Violated = append(k.Violated, string(p))
				}
			}
		}
		if r.Updates != nil {
			k.Updates += r.Updates.Acknowledged
			k.Lost += r.Updates.Lost
		}
		if r.DoubleGrants+r.UsesAfterExpiry > 0 {
			k.Overlapped += r.runsWithVerdict()
		}
		if guard.alone && !slices.Contains(k.Locks, r.Lock) {
			k.Locks = append(k.Locks, r.Lock)
		}
	}
	return k
}

// withoutDuplicates drops duplicates in each experiment and version, see dropDuplicates.
func (e Evidence) withoutDuplicates() (all Evidence) {
	type key struct{ experiment, version string }
	parts := make(map[key][]Run)
	for _, r := range e {
		if r.Experiment == "" || r.isTrial() {
			all = append(all, r)
		} else {
			parts[key{r.Experiment, r.Version()}] = append(parts[key{r.Experiment, r.Version()}], r)
		}
	}
	for _, part := range parts {
		all = append(all, dropDuplicates(part)...)
	}
	return all
}

// untried lists the usual faults for which the lock has no conclusive run.
func untried(cells map[string]Cell) []string {
	var all []string
	for _, fault := range Usual() {
		if state := cells[fault].State; state == NotTried || state == TooShort {
			all = append(all, fault)
		}
	}
	return all
}

// orphaned is the run that shows that a dead holder keeps the lock; nil if none does.
func orphaned(cells map[string]Cell) *Shown {
	for _, fault := range []string{Normal("kill:holder"), Normal("crash:holder")} {
		for _, g := range cells[fault].Groups {
			if g.Class == Stuck && g.Broke > 0 && len(g.With) == 0 {
				return &Shown{fault, fault, g.Runs[0].Lock + "/" + fault, g}
			}
		}
	}
	return nil
}

// deaths counts holders whose processes died, and the longest time by which their locks were free later than
// the lock's rule says.
type deaths struct {
	holders int64
	beyond  time.Duration
}

// deaths sums up all runs in which holders were killed and nothing else, behind any guard. A moved clock may end a
// lease at any time, and servers that fail meanwhile may keep it.
func (e Evidence) deaths(lock string) (d deaths) {
	info, _ := infoOf(lock)
	for _, r := range e {
		killed := Normal("kill:holder")
		f, is := r.fault(killed)
		others := slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Met > 0 && f.Name != killed })
		if r.Lock != lock || !is || f.Met == 0 || r.Failover == nil || others {
			continue
		}
		d.holders += r.Failover.Holders
		d.beyond = max(d.beyond, r.Failover.Longest-r.freeAfter(info))
	}
	return d
}

func manyHolders(n int64) string {
	if n == 1 {
		return "1 holder"
	}
	return fmt.Sprintf("%d holders", n)
}

// fewestAcquires is the least number of acquires. Below it, starting the session takes a good part of the
// measured time.
const fewestAcquires = 20

// aloneShare is the least share of uncontended acquires in an uncontended run.
const aloneShare = 0.95

// uncontendedAcquire returns the measurement with the most acquires, among uncontended runs. If workers waited
// at times, the acquires without a wait would be biased toward the fast ones.
func (e Evidence) uncontendedAcquire(lock string) *Acquire {
	var most *Acquire
	for _, r := range e {
		if r.Lock == lock && r.Guard == history.GuardNone && r.isUncontended() && (most == nil || r.Acquire.N > most.N) {
			most = r.Acquire
		}
	}
	return most
}

// isUncontended says whether hardly any acquire had to compete with another worker. Each update takes one
// acquire, so the share of uncontended acquires follows from the number of updates.
func (r Run) isUncontended() bool {
	a, u := r.Acquire, r.Updates
	return a != nil && u != nil && a.N >= fewestAcquires && float64(a.N) >= aloneShare*float64(u.Acknowledged)
}

// costsData says whether a cell is broken in a way that loses data.
func (c Cell) costsData() bool {
	return slices.ContainsFunc(c.Groups, func(g Group) bool {
		return g.Broke > 0 && (g.Class == ByLock || g.Class == ByExpiry || g.Class == ByUse)
	})
}

// Command shows the break: the command of the reproduction, or of one of the runs that broke.
func (g Group) Command() string {
	i := slices.IndexFunc(g.Runs, Run.Breaks)
	return g.Runs[max(i, 0)].Command()
}

// Command shows the break. Repeating a run that broke by chance would rarely show it, so for such a group the
// command lists the runs.
func (s Shown) Command() string {
	if s.Experiment == "" {
		return reports.CommandLine([]string{"lockcheck", "guide", "--why", s.Cell})
	}
	return s.Group.Command()
}

// short formats a duration without zero parts.
func short(d time.Duration) string {
	text := d.Round(10 * time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Check returns what is wrong with a query; nil if nothing is.
func (q *Query) Check() error {
	if !slices.Contains(Needs(), q.Need) {
		return runs.Usagef("--need %s: there are data, once, waste, failover, infra and long", q.Need)
	}
	names, aliases := Products()
	for i, product := range q.Have {
		product = strings.ToLower(product)
		q.Have[i] = cmp.Or(aliases[product], product)
		if q.Have[i] != noServers && !slices.Contains(names, q.Have[i]) {
			return runs.Usagef("--have %s: lockcheck knows %s, and none for nothing but a shared disk", product, strings.Join(names, ", "))
		}
	}
	return nil
}
