package agent

import "testing"

func TestNames(t *testing.T) {
	const hosts = "127.0.0.1\tlocalhost\n# 10.0.0.2 is redis\n10.0.0.2\tredis cache\n10.0.0.2 n1\n10.0.0.22 postgres\n"
	addresses := []string{"10.0.0.2", "10.0.0.3"}
	for _, c := range []struct {
		cut  Cut
		want string
	}{
		{Cut{Moved: addresses}, "127.0.0.1\tlocalhost\n# 10.0.0.2 is redis\n192.0.2.1\tredis cache\n192.0.2.1 n1\n10.0.0.22 postgres\n"},
		{Cut{Unnamed: addresses}, "127.0.0.1\tlocalhost\n# 10.0.0.2 is redis\n10.0.0.22 postgres\n"},
		{Cut{}, hosts},
	} {
		if got := string(withNames([]byte(hosts), []Cut{c.cut})); got != c.want {
			t.Errorf("%+v: %q", c.cut, got)
		}
	}
}
