package conform_test

// flaw is one way in which an imitation is wrong.
type flaw string

const (
	ignoresKeys          flaw = "ignores keys"
	takesUnquoted        flaw = "takes a key without quotes in strict"
	parametersCount      flaw = "takes parameters for a part of the key"
	takesFirstLine       flaw = "takes the first of two header lines"
	dropsSpaces          flaw = "drops the spaces inside a key"
	foldsCase            flaw = "folds the case of keys"
	takesEmpty           flaw = "takes an empty key"
	cutsOff              flaw = "cuts long keys off"
	joinsWithColon       flaw = "joins principal and key with a colon"
	sharesPrincipals     flaw = "shares keys between principals"
	sharesRoutes         flaw = "shares keys between routes"
	noFingerprint        flaw = "replays whatever the payload"
	runsMismatch         flaw = "runs another payload under the same key"
	fingerprintsByValue  flaw = "compares values and says bytes"
	fingerprintsBodyOnly flaw = "compares bodies alone and says all"
	forgetsEarly         flaw = "forgets before the retention is over"
	runsOldKeys          flaw = "runs keys older than the retention"
	runsWithoutKey       flaw = "runs a request without the key"
	mismatchIs409        flaw = "answers another payload with 409"
	plainErrors          flaw = "writes errors as plain text"
	noRetryAfter         flaw = "does not say when to come back"
	noLock               flaw = "looks, and then runs"
	forgetsWhoHangsUp    flaw = "forgets the key of who hangs up"
	storesEverything     flaw = "stores every answer of the operation"
	storesMismatch       flaw = "stores its own 422"
	effectFirst          flaw = "does not take the effect back"
	replaysAllHeaders    flaw = "replays every header, cookies included"
	dropsHeaders         flaw = "replays without the headers"
	replaysAs200         flaw = "replays with 200"
	noMarker             flaw = "does not mark replays"
	marksEverything      flaw = "marks every answer"
	replaysToAnyone      flaw = "replays to who is no longer allowed"
	looksUpFirst         flaw = "looks the key up before it looks at it"
	runsWhileDown        flaw = "runs while its store is down"
	runsLargeAgain       flaw = "runs again when the answer was too large"
	forgetsAtRestart     flaw = "forgets at a restart"
	actsNoHeaders        flaw = "acts out no header of a script"
	replaysDate          flaw = "replays the date of the first answer"
	publishesOtherwise   flaw = "publishes another retention"
	deadLink             flaw = "links to a page that is not there"
	marksNoWaiter        flaw = "does not mark the answers of who waited"
	saysWait             flaw = "says that repeats wait"
	replaysGets          flaw = "replays what is looked up"
	refusesGets          flaw = "looks at the key of what is looked up"
	recordsGets          flaw = "takes a key that something was looked up with for used"
	tellsByHeader        flaw = "tells by a header that a key is another's"
	tellsByNoHeader      flaw = "tells by a missing header that a key is another's"
	tellsByCode          flaw = "tells by a code that a key is another's"

	// These are ways to fail what Stripe promises.
	expiresKeys flaw = "refuses keys after the retention"
	keepsAnHour flaw = "keeps keys for an hour"
	saysNoMark  flaw = "says that replays are not marked"
	saysRetry   flaw = "says that other parameters may be repeated"

	// These are promises that a profile may make.
	rawKeys            flaw = "takes the line as it is"
	waits              flaw = "lets repeats wait"
	storesServerErrors flaw = "stores 5xx"
	speaksStripe       flaw = "follows Stripe's API"
	hasOwnEndpoint     flaw = "is no fixture"

	// These are ways to be right.
	publishesNothing flaw = "publishes its retention elsewhere"
	hasPagesForAll   flaw = "has a page for every path"
	storesNoRefusal  flaw = "stores no refusal of the operation"
	spellsOtherwise  flaw = "spells headers otherwise"
	behindProxy      flaw = "is behind a proxy that writes what belongs to its hop"
	sendsNoDate      flaw = "has no clock"
	opensSessions    flaw = "gives who is new a cookie"
)

// wrongServer is a flaw of a server that is otherwise so, and the cases that it
// fails: these and no others. Which of those that it may fail it does is a matter
// of chance, or its profile leaves them open.
type wrongServer struct {
	flaw       flaw
	so         []flaw
	fails, may string
}

func wrongServers() []wrongServer {
	return []wrongServer{
		{flaw: ignoresKeys, fails: "1 2 3 4 5 6 7 8 9 10 11 12 13 14 17 18 20 21 22 24 26 27 29 30 32 33 34 35 36 38 40 41 43 44 45 46 47 48 49 50", may: "31"},
		{flaw: takesUnquoted, fails: "2 3 4 13"},
		{flaw: parametersCount, fails: "6"},
		{flaw: takesFirstLine, fails: "7"},
		{flaw: dropsSpaces, fails: "8"},
		{flaw: foldsCase, fails: "9"},
		{flaw: takesEmpty, fails: "10"},
		{flaw: cutsOff, fails: "11"},
		{flaw: joinsWithColon, fails: "12"},
		{flaw: sharesPrincipals, fails: "15 42"},
		{flaw: sharesRoutes, fails: "16"},
		{flaw: noFingerprint, fails: "14 16 21 22 24 34 38"},
		{flaw: runsMismatch, fails: "14 21 22 24 34 38 41"},
		{flaw: fingerprintsByValue, fails: "21"},
		{flaw: fingerprintsBodyOnly, fails: "16 21 22"},
		{flaw: forgetsEarly, fails: "18"},
		{flaw: runsOldKeys, fails: "18 20"},
		{flaw: runsWithoutKey, fails: "35"},
		{flaw: mismatchIs409, fails: "34"},
		{flaw: plainErrors, fails: "34 35 37"},
		{flaw: noRetryAfter, fails: "36 47"},
		{flaw: noLock, fails: "29 36 41", may: "30 31 33"},
		{flaw: forgetsWhoHangsUp, fails: "31"},
		{flaw: storesEverything, fails: "28 40"},
		{flaw: storesMismatch, fails: "14 38 41"},
		{flaw: effectFirst, fails: "28 40 47 48"},
		{flaw: replaysAllHeaders, fails: "45"},
		{flaw: dropsHeaders, fails: "26"},
		{flaw: replaysAs200, fails: "26"},
		{flaw: noMarker, fails: "46", may: "30"},
		{flaw: marksEverything, fails: "25 30 46"},
		{flaw: replaysToAnyone, fails: "44"},
		{flaw: looksUpFirst, fails: "43"},
		{flaw: runsWhileDown, fails: "47"},
		{flaw: runsLargeAgain, fails: "49"},
		{flaw: forgetsAtRestart, fails: "50"},
		{flaw: actsNoHeaders, fails: "26 45"},
		{flaw: replaysDate, fails: "45"},
		{flaw: replaysDate, so: []flaw{hasOwnEndpoint}, fails: "45"},
		{flaw: replaysDate, so: []flaw{behindProxy}, fails: "45"},
		{flaw: publishesOtherwise, fails: "19"},
		{flaw: deadLink, fails: "19"},
		{flaw: deadLink, so: []flaw{publishesNothing}, fails: "19"},
		{flaw: marksNoWaiter, so: []flaw{saysWait, waits}, fails: "30", may: "36"},
		{flaw: saysWait, fails: "29", may: "36"},
		{flaw: noLock, so: []flaw{saysWait}, fails: "29", may: "30 31 33 36"},
		{flaw: replaysGets, fails: "23"},
		{flaw: refusesGets, fails: "23"},
		{flaw: recordsGets, fails: "23"},
		{flaw: tellsByHeader, fails: "42"},
		{flaw: tellsByNoHeader, fails: "42"},
		{flaw: tellsByCode, fails: "12 15 42"},
		{flaw: replaysGets, so: []flaw{speaksStripe}, fails: "23 S2"},
		{flaw: recordsGets, so: []flaw{speaksStripe}, fails: "23 S2"},
		{flaw: expiresKeys, so: []flaw{speaksStripe}, fails: "S9"},
		{flaw: keepsAnHour, so: []flaw{speaksStripe}, fails: "S9"},
		{flaw: saysNoMark, so: []flaw{speaksStripe, noMarker}, fails: "S3 S4", may: "46"},
		{flaw: saysRetry, so: []flaw{speaksStripe}, fails: "S11"},
	}
}

// rightServer is right in its own way, and the cases that cannot be shown of it.
// Nothing else is found of it.
type rightServer struct {
	so       []flaw
	notShown string
}

func rightServers() []rightServer {
	return []rightServer{
		{so: nil},
		{so: []flaw{publishesNothing}, notShown: "19"},
		{so: []flaw{hasPagesForAll}, notShown: "19"},
		{so: []flaw{behindProxy}},
		{so: []flaw{spellsOtherwise}},
		{so: []flaw{storesNoRefusal}, notShown: "27"},
		{so: []flaw{hasOwnEndpoint}, notShown: "16 18 21 22 27 28 29 36 43 44 47 48 49 50"},
		{so: []flaw{hasOwnEndpoint, sendsNoDate}, notShown: "16 18 21 22 27 28 29 36 43 44 45 47 48 49 50"},
		{so: []flaw{opensSessions}},
		{so: []flaw{speaksStripe}, notShown: "20"},
	}
}
