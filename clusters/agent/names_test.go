package agent

import "testing"

func TestMovedNames(t *testing.T) {
	const hosts = "127.0.0.1\tlocalhost\n# 10.0.0.2 is redis\n10.0.0.2\tredis cache\n10.0.0.2 n1\n10.0.0.22 postgres\n"
	const want = "127.0.0.1\tlocalhost\n# 10.0.0.2 is redis\n192.0.2.1\tredis cache\n192.0.2.1 n1\n10.0.0.22 postgres\n"
	if got := string(withMoved([]byte(hosts), []string{"10.0.0.2", "10.0.0.3"})); got != want {
		t.Errorf("%q", got)
	}
	if got := string(withMoved([]byte(hosts), nil)); got != hosts {
		t.Errorf("nothing moved: %q", got)
	}
}
