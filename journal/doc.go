// Package journal keeps the outcomes that could not be recorded in the store in a file,
// so that they survive a restart of the process. Give [Open]'s result to an engine as
// semel.Options.Journal. The command "semel journal" lists the entries and records them.
package journal
