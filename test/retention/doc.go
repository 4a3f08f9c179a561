// Package retention holds no code of its own. Its tests have keys asked for across
// the bounds of generations, on each store, by processes whose clocks differ.
package retention
