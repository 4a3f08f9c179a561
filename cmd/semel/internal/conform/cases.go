package conform

import "slices"

// Cases returns the cases for the profile with that name, in order.
func Cases(profile string) []Case {
	all := slices.Concat(
		syntaxCases(), keyCases(), scopeCases(), timeCases(), fingerprintCases(), repeatCases(), concurrencyCases(),
		errorCases(), securityCases(), faultCases(), stripeCases(),
	)
	return slices.DeleteFunc(all, func(c Case) bool { return c.profile != "" && c.profile != profile })
}
