// Package buffers has a pool of buffers for bytes that are digested or copied at
// once.
package buffers
