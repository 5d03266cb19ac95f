package suites

import "testing"

func TestShard(t *testing.T) {
	for _, text := range []string{"0/2", "3/2", "1", "a/b", "1/0", "-1/2", "2:2", "-1:2", ":", "/"} {
		if _, err := ParseShard(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if got, err := ParseShard("1:8"); err != nil || got != (Shard{2, 8}) {
		t.Errorf("1:8 is %v, %v", got, err)
	}
	// Each run is in exactly one part.
	const of, runs = 3, 10
	for i := range runs {
		in := 0
		for n := 1; n <= of; n++ {
			if (Shard{n, of}).Has(i) {
				in++
			}
		}
		if in != 1 || !(Shard{}).Has(i) {
			t.Errorf("run %d is in %d parts, in the whole: %v", i, in, Shard{}.Has(i))
		}
	}
}
