// Command regie is a self-hosted runtime for AI agents with controlled autonomy (spec 1): one binary, all of it.
package main

import "os"

func main() {
	os.Exit(Main(os.Args[1:]))
}
