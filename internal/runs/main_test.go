package runs

import (
	"os"
	"testing"

	"lockcheck/clients/clienttest"
	"lockcheck/clusters/clustertest"
)

func TestMain(m *testing.M) {
	clienttest.Main()
	os.Exit(clustertest.Main(m))
}
