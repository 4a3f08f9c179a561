// Package callerr has the errors that calls return, the marks that functions put on
// their errors, and the boundary between the errors of an attempt and those of the
// operations that its function called. Package semel publishes what callers need.
package callerr
