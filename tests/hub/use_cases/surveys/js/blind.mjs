// Runs the browser's half of blind signatures on given randomness, and on the browser's own.

import { blind, blindWith, finish, fromHex, openKey } from "/survey/blind.js";

export default async ({ modulus, exponent, prepared, salt, factor, blindSignature, other }) => {
  const key = await openKey({ modulus, exponent });
  const request = await blindWith(key, fromHex(prepared), fromHex(salt), BigInt(`0x${factor}`));
  const again = await Promise.all([blind(key), blind(key)]);
  const refused = async (work) => work().then(() => "accepted", (error) => error.message);
  return {
    fingerprint: key.fingerprint,
    blinded: request.blinded,
    signature: await finish(key, request, blindSignature),
    isFresh: again[0].blinded !== again[1].blinded && again[0].message !== again[1].message,
    wrongSignature: await refused(() => finish(key, request, other)),
    smallKey: await refused(() => openKey({ modulus: modulus.slice(0, 64), exponent })),
    otherExponent: await refused(() => openKey({ modulus, exponent: "3" })),
    evenKey: await refused(() => openKey({ modulus: `${modulus.slice(0, -1)}2`, exponent })),
  };
};
