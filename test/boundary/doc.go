// Package boundary tests rule 14: an operation is a boundary. However the call of an
// inner operation ends, the outer operation that makes the call concludes nothing from
// the inner one's marks and errors. Each way in which an inner call can end is combined
// with each way to run the outer operation.
package boundary
