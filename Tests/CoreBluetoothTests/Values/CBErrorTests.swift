import CoreBluetooth
import Radio
import Testing

@testable import CoreBluetooth

@Suite struct CBErrorTests {
  @Test func bridgesToAnObjectAndBack() throws {
    let error: any Error = CBError(.connectionTimeout)
    let object = error as NSError
    #expect(object.domain == CBErrorDomain)
    #expect(object.code == 6)
    #expect(!error.localizedDescription.isEmpty)
    #expect(error.localizedDescription == object.localizedDescription)
    let tooLong: any Error = CBATTError(.invalidAttributeValueLength)
    #expect(tooLong.localizedDescription.contains("length"))
    let back: any Error = NSError(domain: CBErrorDomain, code: 7)
    #expect((back as? CBError)?.code == .peripheralDisconnected)
    #expect(back as? CBATTError == nil)
    #expect(NSError(domain: "other", code: 7) as any Error as? CBError == nil)
    #expect(CBError(_nsError: object) == CBError(_nsError: object))
  }

  @Test func isCaughtByCode() {
    func fails(with error: any Error) -> String {
      do { throw error } catch CBError.notConnected {
        return "not connected"
      } catch CBATTError.readNotPermitted {
        return "not permitted"
      } catch { return "else" }
    }
    #expect(fails(with: CBError(.notConnected)) == "not connected")
    #expect(fails(with: NSError(domain: CBErrorDomain, code: 3)) == "not connected")
    #expect(fails(with: CBATTError(.readNotPermitted)) == "not permitted")
    #expect(fails(with: CBATTError(.invalidHandle)) == "else")
    // The raw number of readNotPermitted in the other domain.
    #expect(fails(with: CBError(.invalidHandle)) == "else")
    if case CBError.connectionFailed? = (CBError(.connectionFailed) as (any Error)?) {
    } else {
      Issue.record("an optional error did not match")
    }
  }

  @Test func keepsItsUserInfo() {
    let error = CBError(.unknown, userInfo: [NSLocalizedDescriptionKey: "words", "key": 3])
    #expect(error.localizedDescription == "words")
    #expect(error.userInfo["key"] as? Int == 3)
    #expect(CBError.unknownDevice == CBError.unkownDevice)
    #expect(CBError.unknownDevice.rawValue == 12)
  }

  /// Each code has words of its own, and the forms of an error agree on them.
  @Test func everyCodeSaysWhatItMeans() {
    let link = (0...18).compactMap { CBError.Code(rawValue: $0) }.map { CBError($0) }
    let att = (0...0x11).compactMap { CBATTError.Code(rawValue: $0) }.map { CBATTError($0) }
    #expect(Set(link.map(\.localizedDescription)).count == 19)
    #expect(Set(att.map(\.localizedDescription)).count == 18)
    #expect((CBError.errorDomain, CBATTError.errorDomain) == (CBErrorDomain, CBATTErrorDomain))
    for error in link {
      #expect(error.errorUserInfo[NSLocalizedDescriptionKey] as? String == error.localizedDescription)
      #expect((error as NSError).localizedDescription == error.localizedDescription)
      #expect(error.code ~= error && !(error.code ~= CBATTError(.success)))
    }
    for error in att {
      #expect(error.errorUserInfo[NSLocalizedDescriptionKey] as? String == error.localizedDescription)
      #expect((error as NSError).localizedDescription == error.localizedDescription)
      #expect(error.code ~= error && !(error.code ~= CBError(.unknown)))
    }
  }

  @Test(arguments: 0...255)
  func keepsEveryNumberOfTheAir(octet: Int) throws {
    let code = try #require(CBATTError.Code(rawValue: octet))
    #expect(code.rawValue == octet)
    let error = GATTFailure.att(ATTErrorCode(rawValue: UInt8(octet))).error
    #expect((error as NSError).code == octet)
    #expect((error as NSError).domain == CBATTErrorDomain)
    #expect((error as? CBATTError)?.errorCode == octet)
    #expect((error as? CBATTError)?.code == code)
  }

  @Test(arguments: [-1, 256]) func refusesOtherNumbers(number: Int) {
    #expect(CBATTError.Code(rawValue: number) == nil)
  }

  @Test(arguments: [
    (RadioError.Code.supervisionTimeout, CBError.Code.connectionTimeout),
    (.peerTerminated, .peripheralDisconnected), (.connectionFailed, .connectionFailed),
    (.connectionLimit, .connectionLimitReached), (.unknownPeer, .unkownDevice),
    (.alreadyAdvertising, .alreadyAdvertising), (.uuidNotAllowed, .uuidNotAllowed), (.other, .unknown),
    (.invalidParameters, .invalidParameters), (.notConnected, .notConnected), (.notPoweredOn, .notConnected),
    (.outOfSpace, .outOfSpace), (.noResources, .outOfSpace), (.cancelled, .operationCancelled),
    (.timeout, .connectionTimeout), (.notSupported, .operationNotSupported),
    (.psmNotSupported, .operationNotSupported), (.insufficientSecurity, .unknown),
  ])
  func translatesTheRadio(code: RadioError.Code, to expected: CBError.Code) {
    #expect(RadioError(code, "the radio's words").cbError.code == expected)
    #expect(RadioError(code, "the radio's words").cbError.localizedDescription == "the radio's words")
    #expect(RadioError(code).cbError.localizedDescription == expected.text)
  }
}
