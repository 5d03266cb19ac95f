//go:build kubernetes

// Command kubernetes is the program of lockcheck's workers with Kubernetes' client-go, which alone
// takes as long to compile as lockcheck without it.
package main

import "lockcheck/internal/workerprogram"

func main() { workerprogram.Main() }
