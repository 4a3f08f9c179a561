package conform_test

// flaw is one way in which a fake server is wrong, or differs.
type flaw string

const (
	ignoresKeys              flaw = "ignores keys"
	takesUnquoted            flaw = "accepts a key without quotes in strict"
	parametersCount          flaw = "treats parameters as a part of the key"
	takesFirstLine           flaw = "takes the first of two header lines"
	dropsSpaces              flaw = "drops the spaces inside a key"
	foldsCase                flaw = "ignores the case of keys"
	takesEmpty               flaw = "accepts an empty key"
	cutsOff                  flaw = "cuts long keys off"
	joinsWithColon           flaw = "joins principal and key with a colon"
	sharesPrincipals         flaw = "shares keys between principals"
	sharesRoutes             flaw = "shares keys between routes"
	noFingerprint            flaw = "replays for any payload"
	runsMismatch             flaw = "runs another payload under the same key"
	fingerprintsByValue      flaw = "compares values and declares bytes"
	fingerprintsBodyOnly     flaw = "compares only bodies and declares all"
	forgetsEarly             flaw = "forgets before the end of the retention"
	runsOldKeys              flaw = "runs keys older than the retention"
	runsWithoutKey           flaw = "runs a request without the key"
	mismatchIs409            flaw = "answers another payload with 409"
	plainErrors              flaw = "writes errors as plain text"
	noRetryAfter             flaw = "sends no Retry-After"
	noLock                   flaw = "checks and then runs"
	forgetsAfterDisconnect   flaw = "forgets the key when the client disconnects"
	storesEverything         flaw = "stores every answer of the operation"
	storesMismatch           flaw = "stores its own 422"
	effectFirst              flaw = "does not roll the effect back"
	replaysAllHeaders        flaw = "replays every header, cookies included"
	dropsHeaders             flaw = "replays without the headers"
	replaysAs200             flaw = "replays with 200"
	noMarker                 flaw = "does not mark replays"
	marksEverything          flaw = "marks every answer"
	replaysWithoutPermission flaw = "replays to a principal without permission"
	looksUpFirst             flaw = "looks the key up before it validates it"
	runsWhileDown            flaw = "runs while its store is down"
	runsLargeAgain           flaw = "runs again when the answer was too large"
	forgetsAtRestart         flaw = "forgets at a restart"
	actsNoHeaders            flaw = "sends no header of a script"
	replaysDate              flaw = "replays the date of the first answer"
	publishesOtherwise       flaw = "publishes another retention"
	deadLink                 flaw = "links to a page that is not there"
	waitersUnmarked          flaw = "does not mark the answers of waiters"
	declaresWait             flaw = "declares that retries wait"
	replaysGets              flaw = "replays reads"
	refusesGets              flaw = "validates the key of reads"
	recordsGets              flaw = "treats the key of a read as used"
	revealsByHeader          flaw = "reveals by a header that a key is another principal's"
	revealsByNoHeader        flaw = "reveals by a missing header that a key is another principal's"
	revealsByCode            flaw = "reveals by a code that a key is another principal's"

	// These flaws break promises of Stripe.
	expiresKeys      flaw = "refuses keys after the retention"
	keepsAnHour      flaw = "keeps keys for an hour"
	declaresNoMarker flaw = "declares that replays are not marked"
	saysRetry        flaw = "says that other parameters may be retried"

	// These are promises that a profile may make.
	rawKeys            flaw = "takes the line as it is"
	waits              flaw = "lets retries wait"
	storesServerErrors flaw = "stores 5xx"
	speaksStripe       flaw = "follows Stripe's API"
	hasOwnEndpoint     flaw = "is not a fixture"

	// These differences are correct.
	publishesNothing flaw = "publishes its retention elsewhere"
	hasPagesForAll   flaw = "has a page for every path"
	storesNoRefusal  flaw = "stores no refusal of the operation"
	spellsOtherwise  flaw = "spells headers differently"
	behindProxy      flaw = "is behind a proxy that writes its own headers"
	sendsNoDate      flaw = "has no clock"
	opensSessions    flaw = "gives new clients a cookie"
)

// wrongServer is a flaw of a server with otherwise correct behavior, and the
// cases that it fails: all of fails, and no case outside fails and may. The cases
// in may fail depending on timing, or the profile leaves them open.
type wrongServer struct {
	flaw       flaw
	otherFlaws []flaw
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
		{flaw: forgetsAfterDisconnect, fails: "31"},
		{flaw: storesEverything, fails: "28 40"},
		{flaw: storesMismatch, fails: "14 38 41"},
		{flaw: effectFirst, fails: "28 40 47 48"},
		{flaw: replaysAllHeaders, fails: "45"},
		{flaw: dropsHeaders, fails: "26"},
		{flaw: replaysAs200, fails: "26"},
		{flaw: noMarker, fails: "46", may: "30"},
		{flaw: marksEverything, fails: "25 30 46"},
		{flaw: replaysWithoutPermission, fails: "44"},
		{flaw: looksUpFirst, fails: "43"},
		{flaw: runsWhileDown, fails: "47"},
		{flaw: runsLargeAgain, fails: "49"},
		{flaw: forgetsAtRestart, fails: "50"},
		{flaw: actsNoHeaders, fails: "26 45"},
		{flaw: replaysDate, fails: "45"},
		{flaw: replaysDate, otherFlaws: []flaw{hasOwnEndpoint}, fails: "45"},
		{flaw: replaysDate, otherFlaws: []flaw{behindProxy}, fails: "45"},
		{flaw: publishesOtherwise, fails: "19"},
		{flaw: deadLink, fails: "19"},
		{flaw: deadLink, otherFlaws: []flaw{publishesNothing}, fails: "19"},
		{flaw: waitersUnmarked, otherFlaws: []flaw{declaresWait, waits}, fails: "30", may: "36"},
		{flaw: declaresWait, fails: "29", may: "36"},
		{flaw: noLock, otherFlaws: []flaw{declaresWait}, fails: "29", may: "30 31 33 36"},
		{flaw: replaysGets, fails: "23"},
		{flaw: refusesGets, fails: "23"},
		{flaw: recordsGets, fails: "23"},
		{flaw: revealsByHeader, fails: "42"},
		{flaw: revealsByNoHeader, fails: "42"},
		{flaw: revealsByCode, fails: "12 15 42"},
		{flaw: replaysGets, otherFlaws: []flaw{speaksStripe}, fails: "23 S2"},
		{flaw: recordsGets, otherFlaws: []flaw{speaksStripe}, fails: "23 S2"},
		{flaw: expiresKeys, otherFlaws: []flaw{speaksStripe}, fails: "S9"},
		{flaw: keepsAnHour, otherFlaws: []flaw{speaksStripe}, fails: "S9"},
		{flaw: declaresNoMarker, otherFlaws: []flaw{speaksStripe, noMarker}, fails: "S3 S4", may: "46"},
		{flaw: saysRetry, otherFlaws: []flaw{speaksStripe}, fails: "S11"},
	}
}

// rightServer is a correct server, and the cases that cannot be tested on it.
// It has no other findings.
type rightServer struct {
	otherFlaws []flaw
	notShown   string
}

func rightServers() []rightServer {
	return []rightServer{
		{otherFlaws: nil},
		{otherFlaws: []flaw{publishesNothing}, notShown: "19"},
		{otherFlaws: []flaw{hasPagesForAll}, notShown: "19"},
		{otherFlaws: []flaw{behindProxy}},
		{otherFlaws: []flaw{spellsOtherwise}},
		{otherFlaws: []flaw{storesNoRefusal}, notShown: "27"},
		{otherFlaws: []flaw{hasOwnEndpoint}, notShown: "16 18 21 22 27 28 29 36 43 44 47 48 49 50"},
		{otherFlaws: []flaw{hasOwnEndpoint, sendsNoDate}, notShown: "16 18 21 22 27 28 29 36 43 44 45 47 48 49 50"},
		{otherFlaws: []flaw{opensSessions}},
		{otherFlaws: []flaw{speaksStripe}, notShown: "20"},
	}
}
