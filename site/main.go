// Command site builds the documentation site from the Markdown files of the repository.
//
//	go run . -source .. -out ../var/site
//
// The pages are README.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and all Markdown files
// below docs, in English and Chinese. docs/README.md gives the order of the navigation. A link
// to a file or heading that does not exist is an error.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("source", "..", "directory of the repository")
	out := flag.String("out", "../var/site", "directory of the site; the program replaces it")
	flag.Parse()
	pages, err := build(*source, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "%d pages in %s\n", pages, *out)
}
