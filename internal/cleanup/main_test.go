package cleanup

import (
	"os"
	"testing"

	"lockcheck/clusters/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }
