// Package retention holds no code of its own. Its tests call keys across the bounds
// of generations, on each store, from processes whose clocks differ.
package retention
