// Command redsync-4.12.0 is the program of lockcheck's workers with another version of redsync.
package main

import "lockcheck/internal/workerprogram"

func main() { workerprogram.Main() }
