"""What mail programs write into a mail by themselves, by language: introductions of quotes, headers, signatures.

The table follows the translations of Gmail, Outlook, Apple Mail, Thunderbird, Yahoo, Proton, Roundcube, K-9 Mail and
national providers. A new language is a new row. `|` separates phrases, `…` stands for words that vary, and letter case
does not matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# ruff: noqa: RUF001  other alphabets are the point of this table


@dataclass(frozen=True, slots=True)
class Phrases:
    """One language."""

    language: str
    wrote: str = ""
    """The verb of an introduction: "On 5 Jan 2023, Ann wrote:"."""
    sender: str = ""
    """Names of header fields, as Outlook repeats them above the mail that is answered."""
    sent: str = ""
    recipient: str = ""
    subject: str = ""
    original: str = ""
    """Stands between dashes: "-----Original Message-----"."""
    forwarded: str = ""
    above: str = ""
    """The delimiter of help desks: "reply above this line"."""
    device: str = ""
    """A line that a program or a phone puts below each mail."""
    absent: str = ""
    """How the subject of an automatic reply begins."""
    disclaimer: str = ""
    """Of a legal notice below a mail; three of them make a paragraph one."""


LANGUAGES = (
    Phrases(
        "English",
        wrote="wrote|writes|said",
        sender="from",
        sent="sent|date",
        recipient="to|cc|bcc|reply-to",
        subject="subject",
        original="original message|original appointment|reply message|original mail|original email",
        forwarded="forwarded message|begin forwarded message|forwarded mail",
        above="reply…above this line|respond…above this line|write above this line|type…above these lines"
        "|type…above this line|enter…above this line|not write below this line"
        "|not reply below this line|reply…between these lines|write…between these lines",
        device="sent from …|sent via …|sent with …|sent using …|sent by galaxy|shared from …|typed on …"
        "|written on my …|from my iphone…|from my ipad…|from my android…|get outlook for …"
        "|get bluemail for …|sent on the go…"
        "|please excuse my brevity|please excuse typos|please excuse any typos"
        "|sent from my … please excuse…|sent from my …, please excuse…|sent from my verizon, …|sent via the …, an …"
        "|this email has been checked for viruses by …|virus-free…|this email was scanned by …"
        "|please consider the environment before printing…|p please consider the environment…"
        "|think before you print…|think green…",
        absent="automatic reply|auto reply|autoreply|auto-reply|auto response|auto-response|autoresponse"
        "|automated reply|automated response|out of office|out of the office|out of office autoreply"
        "|vacation reply|away from the office",
        disclaimer="confidential|privileged|intended recipient|intended solely|intended only"
        "|notify the sender|notify us|in error|unauthorized|unauthorised|strictly prohibited"
        "|delete this|delete it|this e-mail|this email|this message|any attachments|addressee",
    ),
    Phrases(
        "German",
        wrote="schrieb|schrieben sie|geschrieben|schreibt",
        sender="von",
        sent="gesendet|gesendet am|datum",
        recipient="an|kopie|antwort an|blindkopie",
        subject="betreff",
        original="ursprüngliche nachricht|originalnachricht|original-nachricht|ursprüngliche e-mail"
        "|ursprüngliche mail|antwort nachricht|antwortnachricht",
        forwarded="weitergeleitete nachricht|anfang der weitergeleiteten nachricht"
        "|anfang der weitergeleiteten e-mail|weitergeleitete mail",
        above="antwort…oberhalb dieser zeile|antwort…oberhalb dieser linie|antwort…über dieser linie"
        "|antwort…über dieser zeile|antwort…über diese linie|antwort…über diese zeile",
        device="von meinem … gesendet|von meiner … gesendet|von meinem/meiner … gesendet"
        "|gesendet von …|gesendet mit …|gesendet aus …"
        "|gesendet via …|diese nachricht wurde von … gesendet|diese nachricht wurde mit … gesendet"
        "|outlook für … beziehen|outlook für … herunterladen|holen sie sich outlook für …"
        "|von meinem iphone…|von meinem ipad…|von unterwegs gesendet|von yahoo mail … gesendet|virenfrei…"
        "|diese e-mail wurde von … auf viren geprüft",
        absent="automatische antwort|abwesenheitsnotiz|abwesenheitsnachricht|abwesend|abwesenheit|autoantwort",
        disclaimer="vertraulich|rechtlich geschützt|richtige adressat|vorgesehene empfänger|den absender"
        "|vernichten|irrtümlich|unbefugt|nicht gestattet|diese e-mail|diese mail|diese nachricht"
        "|löschen sie",
    ),
    Phrases(
        "French",
        wrote="a écrit|a ecrit|écrivait|nous a dit|écrit",
        sender="de|expéditeur|message du",
        sent="envoyé|envoyé le|envoyé par|date|date d'envoi",
        recipient="à|pour|copie à|répondre à|destinataire",
        subject="objet|sujet",
        original="mail original|message d'origine|message d’origine|message original|message initial",
        forwarded="message transféré|message transmis|début du message réexpédié|début du message transféré"
        "|message réexpédié|message transfere",
        above="répon…au-dessus de cette ligne|répon…au dessus de cette ligne|répon…dessus de cette ligne"
        "|écri…au-dessus de cette ligne",
        device="envoyé de mon …|envoyé de ma …|envoyé depuis …|envoyé à partir de …|envoyé avec …"
        "|envoyé par …|garanti sans virus…|l'absence de virus dans ce courrier électronique a été vérifiée par …"
        "|obtenir outlook pour …|télécharger outlook pour …|obtenez outlook pour …|télécharger bluemail pour …"
        "|provenance : courrier pour …|provenance : outlook…",
        absent="réponse automatique|absence du bureau|absent du bureau|message d'absence|notification d'absence",
        disclaimer="confidentiel|destinataire|par erreur|l'expéditeur|détruire|strictement interdit"
        "|usage exclusif|ce message|ce courriel|pièces jointes",
    ),
    Phrases(
        "Spanish",
        wrote="escribió|escribio|ha escrito",
        sender="de|remitente",
        sent="enviado|enviado el|fecha|enviada el",
        recipient="para|copia|responder a",
        subject="asunto",
        original="mensaje original|correo original",
        forwarded="mensaje reenviado|inicio del mensaje reenviado|correo reenviado",
        above="respuesta por encima de esta línea|respond…encima de esta línea|respond…arriba de esta línea"
        "|escrib…encima de esta línea|escrib…arriba de esta línea",
        device="enviado desde …|enviado con …|enviado de mi …|enviado mediante …|libre de virus…"
        "|el software de antivirus … ha analizado este correo electrónico en busca de virus|obtener outlook para …"
        "|obtén outlook para …",
        absent="respuesta automática|respuesta automatica|fuera de la oficina|fuera de oficina|autorespuesta",
        disclaimer="confidencial|destinatario|por error|remitente|prohibid|este mensaje|este correo",
    ),
    Phrases(
        "Italian",
        wrote="ha scritto|scrive",
        sender="da|mittente",
        sent="inviato|inviato il|data",
        recipient="a|per|copia|rispondi a",
        subject="oggetto",
        original="messaggio originale|messaggio originario",
        forwarded="messaggio inoltrato|inizio messaggio inoltrato|inizio del messaggio inoltrato",
        above="rispo…sopra questa riga|rispo…sopra questa linea|rispo…al di sopra di questa riga",
        device="inviato da …|inviato dal …|inviato con …|privo di virus…"
        "|questa e-mail è stata controllata per individuare virus con …|ottieni outlook per …|scarica outlook per …",
        absent="risposta automatica|fuori sede|fuori ufficio|risposta non al computer",
        disclaimer="riservat|destinatari|per errore|mittente|vietat|questo messaggio|questa e-mail|presente messaggio",
    ),
    Phrases(
        "Portuguese",
        wrote="escreveu|escreveu o seguinte",
        sender="de|remetente",
        sent="enviado|enviada|enviado em|enviada em|enviado a|data",
        recipient="para|cópia|responder para",
        subject="assunto",
        original="mensagem original|e-mail original",
        forwarded="mensagem encaminhada|mensagem reencaminhada|início da mensagem encaminhada"
        "|início da mensagem reencaminhada|mensagem enviada",
        above="resp…acima desta linha|resp…acima dessa linha|escreva acima desta linha",
        device="enviado do meu …|enviado da minha …|enviado do …|enviado a partir do …|enviado a partir de …"
        "|enviado pelo …|enviado por …|enviado via …|livre de vírus…|não contém vírus…|este email foi escaneado pelo …"
        "|obter o outlook para …|obter outlook para …"
        "|obtenha o outlook para …|baixe o outlook para …",
        absent="resposta automática|resposta automatica|fora do escritório|ausência temporária",
        disclaimer="confidencia|destinatário|por engano|por erro|remetente|proibid|esta mensagem|este e-mail"
        "|este email",
    ),
    Phrases(
        "Dutch",
        wrote="schreef|geschreven|het volgende geschreven",
        sender="van|afzender",
        sent="verzonden|verzonden op|datum",
        recipient="aan|antwoord aan",
        subject="onderwerp",
        original="oorspronkelijk bericht|origineel bericht|oorspronkelijke e-mail",
        forwarded="doorgestuurd bericht|begin doorgestuurd bericht",
        above="antwoord…boven deze lijn|antwoord…boven deze regel|reageer…boven deze lijn"
        "|reageer…boven deze regel|reactie…boven deze regel",
        device="verstuurd vanaf …|verzonden vanaf …|verzonden met …|verzonden vanuit …|verzonden via …"
        "|virusvrij…|deze e-mail is gecontroleerd op virussen met …"
        "|verstuurd met …|verstuurd vanuit …|verstuurd via …|outlook voor … downloaden|op mijn mobiel getypt"
        "|download outlook voor …",
        absent="automatisch antwoord|afwezigheidsbericht|afwezig|autoreply",
        disclaimer="vertrouwelijk|geadresseerde|uitsluitend bestemd|de afzender|ten onrechte|abusievelijk"
        "|dit bericht|deze e-mail",
    ),
    Phrases(
        "Swedish",
        wrote="skrev|skrev följande|skriver",
        sender="från",
        sent="skickat|datum",
        recipient="till|kopia|svar till",
        subject="ämne",
        original="ursprungligt meddelande|originalmeddelande|ursprungligt mejl",
        forwarded="vidarebefordrat meddelande|vidarebefordrat mejl|vidarebefordrat brev",
        above="svar…ovanför den här raden|svar…ovanför denna rad|svar…ovanför den här linjen|skriv ovanför denna rad",
        device="skickat från …|skickad från …|skickat med …|från min iphone…|hämta outlook för …",
        absent="autosvar|automatiskt svar|frånvaro|frånvaromeddelande",
        disclaimer="konfidentiell|mottagare|avsändaren|av misstag|detta meddelande|detta mejl|denna e-post",
    ),
    Phrases(
        "Danish",
        wrote="skrev|skrev følgende|skriver",
        sender="fra",
        sent="sendt|dato",
        recipient="til|kopi|svar til",
        subject="emne",
        original="oprindelig meddelelse|oprindelig besked|oprindelig mail|original besked",
        forwarded="videresendt meddelelse|videresendt besked|start på videresendt besked",
        above="svar…over denne linje|skriv over denne linje|svar…oven over denne linje",
        device="sendt fra …|sendt med …|sendt via …|hent outlook til …",
        absent="automatisk svar|autosvar|ikke til stede|fraværsbesked",
        disclaimer="fortrolig|modtager|afsenderen|ved en fejl|denne e-mail|denne mail|denne meddelelse",
    ),
    Phrases(
        "Norwegian",
        wrote="skrev|skrev følgende",
        sender="fra",
        sent="sendt|dato",
        recipient="til|kopi",
        subject="emne|tema",
        original="opprinnelig melding|original melding|opprinnelig e-post",
        forwarded="videresendt melding|videresendt e-post|begynnelsen på videresendt melding",
        above="svar…over denne linjen|skriv over denne linjen",
        device="sendt fra …|sendt med …|skaff deg outlook for …|få outlook for …|hent outlook for …",
        absent="automatisk svar|autosvar|fraværsmelding|fravær",
    ),
    Phrases(
        "Finnish",
        wrote="kirjoitti|kirjoitti seuraavaa",
        sender="lähettäjä",
        sent="lähetetty|päivämäärä|päiväys",
        recipient="vastaanottaja|kopio",
        subject="aihe",
        original="alkuperäinen viesti|alkuperäinen sähköposti",
        forwarded="välitetty viesti|välitetty viesti alkaa|edelleenlähetetty viesti|välitetty viesti / fwd.msg",
        above="vastau…tämän rivin yläpuolelle|vastaa…tämän rivin yläpuolelle|vastaa…tämän viivan yläpuolelle",
        device="lähetetty …|hanki outlook …|hae outlook …",
        absent="automaattinen vastaus|automaattivastaus|poissaoloilmoitus",
    ),
    Phrases(
        "Icelandic",
        wrote="skrifaði",
        sender="frá",
        sent="sent",
        recipient="til",
        subject="efni",
    ),
    Phrases(
        "Polish",
        wrote="pisze|napisał|napisała|napisał(a)|wiadomość napisana przez",
        sender="od|nadawca",
        sent="wysłano|wysłane|data",
        recipient="do|adresat|dw",
        subject="temat",
        original="wiadomość oryginalna|oryginalna wiadomość|wiadomość źródłowa|pierwotna wiadomość",
        forwarded="przekazana wiadomość|początek przekazywanej wiadomości|treść przekazanej wiadomości"
        "|wiadomość przekazana dalej",
        above="odpowied…powyżej tej linii|odpowied…powyżej tego wiersza|odpowied…nad tą linią",
        device="wysłane z …|wysłano z …|wysłane za pomocą …|wysłano za pomocą …|pobierz outlook dla …"
        "|pobierz aplikację outlook dla …|uzyskaj aplikację outlook dla …",
        absent="automatyczna odpowiedź|odpowiedź automatyczna|autoodpowiedź|autoresponder|poza biurem",
        disclaimer="poufn|adresat|nadawc|omyłkowo|ta wiadomość|niniejsza wiadomość",
    ),
    Phrases(
        "Czech",
        wrote="napsal|napsala|napsal(a)|píše",
        sender="od",
        sent="odesláno|datum",
        recipient="komu|kopie",
        subject="předmět",
        original="původní zpráva|původní e-mail|původní email",
        forwarded="přeposlaná zpráva|začátek přeposílané zprávy|přeposlaný e-mail",
        above="odpověď…nad tento řádek|odpov…nad tímto řádkem|odpov…nad touto čarou",
        device="odesláno z …|odesláno ze …|odesláno pomocí …|získat outlook pro …|stáhnout outlook pro …",
        absent="automatická odpověď|mimo kancelář",
        disclaimer="důvěrn|adresát|odesílatel|omylem|tato zpráva|tento e-mail",
    ),
    Phrases(
        "Slovak",
        wrote="napísal|napísala|napísal(a)|píše",
        sender="od",
        sent="odoslané|dátum",
        recipient="komu|pre|kópia",
        subject="predmet",
        original="pôvodná správa|pôvodný e-mail",
        forwarded="preposlaná správa|začiatok preposlanej správy|preposlaná správa --- forwarded message",
        above="odpoveď…nad tento riadok|odpove…nad týmto riadkom",
        device="odoslané z …|odoslané zo …|odoslané pomocou …|získať outlook pre …",
        absent="automatická odpoveď|mimo kancelárie",
    ),
    Phrases(
        "Hungarian",
        wrote="írta|ezt írta|a következőt írta",
        sender="feladó",
        sent="elküldve|küldve|dátum",
        recipient="címzett|másolatot kap|másolat",
        subject="tárgy",
        original="eredeti üzenet|eredeti levél",
        forwarded="továbbított üzenet|továbbított levél kezdete|továbbított levél",
        above="válasz…e sor fölé|válasz…a sor fölé|válasz…ezen sor fölé|válasz…e vonal fölé",
        device="az iphone-omról küldve|az ipad-emről küldve|… eszközömről küldve|… eszközről küldve"
        "|küldve az …|küldve a …|elküldve a következőből: …|az outlook letöltése …|outlook beszerzése …",
        absent="automatikus válasz|házon kívül",
    ),
    Phrases(
        "Romanian",
        wrote="a scris",
        sender="de la|expeditorul|expeditor",
        sent="trimis|data|dată",
        recipient="către|destinatarul|catre",
        subject="subiect|subiectul",
        original="mesaj original|mesajul original|mesaj inițial",
        forwarded="mesaj redirecționat|începe mesajul redirecționat|mesaj retrimis",
        above="răspun…deasupra acestei linii|răspun…deasupra acestui rând",
        device="trimis de pe …|trimis din …|trimis cu …|obțineți outlook pentru …|descărcați outlook pentru …",
        absent="răspuns automat|raspuns automat",
    ),
    Phrases(
        "Russian",
        wrote="написал|написала|написал(а)|пишет|писал|писал(а)|писала",
        sender="от|от кого|отправитель",
        sent="отправлено|дата|отправлено в",
        recipient="кому|копия",
        subject="тема",
        original="исходное сообщение|оригинальное сообщение|исходное письмо|первоначальное сообщение",
        forwarded="пересылаемое сообщение|перенаправленное сообщение|начало переадресованного сообщения"
        "|пересылаемое письмо|переадресованное сообщение",
        above="отве…выше этой линии|отве…выше этой строки|отве…над этой строкой|отве…над этой линией",
        device="отправлено с …|отправлено из …|отправлено со …|отправлено через …|скачать outlook для …"
        "|получить outlook для …",
        absent="автоматический ответ|автоответ|автоответчик|вне офиса",
        disclaimer="конфиденциальн|адресат|получател|отправител|по ошибке|данное сообщение|это сообщение"
        "|настоящее сообщение",
    ),
    Phrases(
        "Ukrainian",
        wrote="пише|написав|написала|написав(ла)|писав",
        sender="від|від кого",
        sent="надіслано|дата",
        recipient="кому|копія",
        subject="тема",
        original="оригінальне повідомлення|початкове повідомлення|вихідне повідомлення",
        forwarded="переслане повідомлення|перенаправлене повідомлення|початок листа, що пересилається",
        above="відпов…над цим рядком|відпов…вище цієї лінії|відпов…вище цього рядка",
        device="надіслано з …|надіслано через …|відправлено з …|отримати outlook для …",
        absent="автоматична відповідь|автовідповідь",
    ),
    Phrases(
        "Bulgarian",
        wrote="написа|писа",
        sender="от",
        sent="изпратено|дата",
        recipient="до|копие",
        subject="относно|тема",
        original="оригинално съобщение|оригинално писмо|първоначално съобщение",
        forwarded="препратено съобщение|препратено писмо",
        device="изпратено от …|изпратено с …",
        absent="автоматичен отговор",
    ),
    Phrases(
        "Serbian and Croatian",
        wrote="је написао|је написала|је написао/ла|је написао(ла)|napisao je|napisala je|je napisao"
        "|je napisala|je napisao/la|piše|napisao|написао|написала",
        sender="od|šalje|шаље|од",
        sent="poslano|poslato|datum|датум",
        recipient="prima|za|kome|за",
        subject="predmet|naslov|наслов",
        original="izvorna poruka|originalna poruka|оригинална порука|izvorni e-mail",
        forwarded="proslijeđena poruka|prosleđena poruka|započni proslijeđenu poruku|прослеђена порука",
        device="poslano s …|poslano sa …|poslano iz …|poslato sa …|послато са …|preuzmite outlook za …",
        absent="automatski odgovor|аутоматски одговор",
    ),
    Phrases(
        "Slovenian",
        wrote="napisal|napisala|napisal(a)|je napisal|je napisal(a)|piše",
        sender="od",
        sent="poslano|datum",
        recipient="za|kp",
        subject="zadeva",
        original="izvirno sporočilo",
        forwarded="posredovano sporočilo",
        device="poslano z …|poslano iz …|prenesite outlook za …",
        absent="samodejni odgovor",
    ),
    Phrases(
        "Greek",
        wrote="έγραψε",
        sender="από|αποστολέας",
        sent="στάλθηκε|ημερομηνία|αποστολή",
        recipient="προς|κοιν|κοινοποίηση",
        subject="θέμα",
        original="αρχικό μήνυμα|πρωτότυπο μήνυμα",
        forwarded="προωθημένο μήνυμα|έναρξη προωθημένου μηνύματος",
        device="στάλθηκε από …|αποστολή από …|εστάλη από …|λήψη του outlook για …",
        absent="αυτόματη απάντηση",
    ),
    Phrases(
        "Turkish",
        wrote="yazdı|şunu yazdı|şunları yazdı|tarihinde yazdı",
        sender="kimden|gönderen",
        sent="gönderildi|gönderme tarihi|tarih|gönderilme tarihi",
        recipient="kime|bilgi",
        subject="konu",
        original="özgün ileti|özgün i̇leti|orijinal mesaj|orijinal ileti|asıl ileti|özgün mesaj",
        forwarded="iletilen ileti|iletilmiş mesaj|i̇letilen i̇leti|i̇letilmiş mesaj|i̇leti başlangıcı"
        "|ileti başlangıcı|yönlendirilen ileti|yönlendirilmiş mesaj",
        above="yanıt…bu satırın üzerine|yanıt…bu satırın üstüne|cevap…bu satırın üzerine|cevap…bu satırın üstüne",
        device="iphone…dan gönderildi|ipad…den gönderildi|samsung…dan gönderildi|outlook…den gönderildi"
        "|outlook…dan gönderildi|galaxy…dan gönderildi|… cihazımdan gönderildi"
        "|… için outlook'u edinin|… için outlook'u indirin",
        absent="otomatik yanıt|otomatik cevap|ofis dışında",
    ),
    Phrases(
        "Lithuanian",
        wrote="rašė|parašė",
        sender="nuo|siuntėjas",
        sent="išsiųsta|data",
        recipient="kam|gavėjas",
        subject="tema",
        original="pradinis laiškas",
        forwarded="persiųstas laiškas",
        device="išsiųsta iš …",
        absent="automatinis atsakymas",
    ),
    Phrases(
        "Latvian",
        wrote="rakstīja",
        sender="no|sūtītājs",
        sent="nosūtīts|datums",
        recipient="kam",
        subject="tēma",
        original="sākotnējais ziņojums|oriģinālais ziņojums",
        forwarded="pārsūtīts ziņojums",
        device="nosūtīts no …",
        absent="automātiska atbilde",
    ),
    Phrases(
        "Estonian",
        wrote="kirjutas",
        sender="saatja",
        sent="saadetud|kuupäev",
        recipient="adressaat|saaja",
        subject="teema",
        original="algne kiri|algsõnum|originaalteade",
        forwarded="edastatud kiri",
        device="saadetud minu …",
        absent="automaatvastus",
    ),
    Phrases(
        "Armenian",
        wrote="գրեց|գրել է",
        sender="ումից",
        sent="ուղարկված",
        recipient="ում",
        subject="թեմա",
    ),
    Phrases(
        "Catalan",
        wrote="va escriure|ha escrit",
        sender="de",
        sent="enviat|enviat el|data",
        recipient="per a|a",
        subject="assumpte|tema",
        original="missatge original",
        forwarded="missatge reenviat",
        device="enviat des de …|enviat des del …|obtén l'outlook per a …",
        absent="resposta automàtica",
    ),
    Phrases(
        "Galician",
        wrote="escribiu",
        sender="de",
        sent="enviado|data",
        recipient="para",
        subject="asunto",
        original="mensaxe orixinal",
        forwarded="mensaxe reenviada",
    ),
    Phrases(
        "Basque",
        wrote="idatzi du|igorleak hau idatzi du",
        sender="nork",
        sent="bidalia|data",
        recipient="nori",
        subject="gaia",
        original="jatorrizko mezua",
    ),
    Phrases(
        "Afrikaans",
        wrote="het geskryf|geskryf",
        sender="van",
        sent="gestuur|datum",
        recipient="aan",
        subject="onderwerp",
        original="oorspronklike boodskap",
        forwarded="aangestuurde boodskap",
    ),
    Phrases(
        "Vietnamese",
        wrote="đã viết|viết",
        sender="từ",
        sent="đã gửi|ngày",
        recipient="đến|tới",
        subject="chủ đề|tiêu đề",
        original="thư gốc|tin nhắn gốc",
        forwarded="thư đã chuyển tiếp|tin nhắn đã chuyển tiếp",
        device="đã gửi từ …|được gửi từ …|gửi từ …",
        absent="trả lời tự động",
    ),
    Phrases(
        "Indonesian",
        wrote="menulis|berkata",
        sender="dari",
        sent="dikirim|tanggal",
        recipient="kepada|ke",
        subject="subjek|perihal|subyek",
        original="pesan asli",
        forwarded="pesan terusan|pesan yang diteruskan",
        device="dikirim dari …|dapatkan outlook untuk …",
        absent="balasan otomatis",
    ),
    Phrases(
        "Thai",
        wrote="เขียนว่า|เขียน",
        sender="จาก",
        sent="ส่ง|วันที่",
        recipient="ถึง",
        subject="เรื่อง",
        original="ข้อความต้นฉบับ|ข้อความเดิม",
        forwarded="ข้อความที่ส่งต่อ",
        device="ส่งจาก …",
        absent="ตอบกลับอัตโนมัติ",
    ),
    Phrases(
        "Hindi",
        wrote="ने लिखा",
        sender="प्रेषक",
        sent="भेजा गया|दिनांक",
        recipient="प्रति",
        subject="विषय",
        original="मूल संदेश",
    ),
    Phrases(
        "Hebrew",
        wrote="כתב|כתבה|כתב/ה|מאת",
        sender="מאת",
        sent="נשלח|תאריך",
        recipient="אל|עותק",
        subject="נושא",
        original="הודעה מקורית",
        forwarded="הודעה שהועברה",
        device="נשלח מה…|נשלח מ…",
        absent="תשובה אוטומטית|מענה אוטומטי",
    ),
    Phrases(
        "Arabic",
        wrote="كتب|كتبت|تمت كتابة ما يلي بواسطة",
        sender="من",
        sent="تاريخ الإرسال|أرسلت|التاريخ|تم الإرسال",
        recipient="إلى|نسخة",
        subject="الموضوع",
        original="الرسالة الأصلية",
        forwarded="رسالة محولة|رسالة معاد توجيهها",
        device="أرسلت من …|أُرسلت من …|تم الإرسال من …|مرسل من …",
        absent="رد تلقائي",
    ),
    Phrases(
        "Persian",
        wrote="نوشت|نوشته است",
        sender="از",
        sent="تاریخ|ارسال",
        recipient="به",
        subject="موضوع",
        original="پیام اصلی",
        forwarded="پیام هدایت شده",
        device="ارسال شده از …",
    ),
    Phrases(
        "Japanese",
        wrote="のメール|は書きました|wrote",
        sender="差出人|送信者|送信元",
        sent="送信日時|日付|日時",
        recipient="宛先",
        subject="件名",
        original="元のメッセージ|元のメール|オリジナルメッセージ",
        forwarded="転送されたメッセージ|転送メッセージ",
        above="この行より上に|この行の上に",
        device="iphoneから送信|ipadから送信|…から送信",
        absent="自動応答|自動返信|不在通知",
    ),
    Phrases(
        "Korean",
        wrote="작성|작성함|쓴 글|님이 작성",
        sender="보낸 사람|보낸사람|발신",
        sent="보낸 날짜|날짜|보낸날짜",
        recipient="받는 사람|받는사람|참조",
        subject="제목",
        original="원본 메시지|원본 메일|원본 이메일|원본메일",
        forwarded="전달된 메시지|전달된 메일",
        above="이 줄 위에|이 선 위에",
        device="나의 …에서 보냄|내 …에서 보냄",
        absent="자동 회신|자동 응답|부재중",
    ),
    Phrases(
        "Chinese",
        wrote="写道|寫道|撰写|撰寫",
        sender="发件人|寄件者|寄件人|發件人",
        sent="发送时间|寄件日期|日期|发送日期|發送時間|傳送時間|傳送日期",
        recipient="收件人|收件者|抄送|副本",
        subject="主题|主旨|主題",
        original="原始邮件|原始郵件|原邮件|原始信件|原始訊息|邮件原件",
        forwarded="转发的邮件|轉寄的郵件|已转发邮件|转发邮件|轉寄郵件",
        above="在此行上方|在此線上方|在这行上方",
        device="发自我的…|發自我的…|從我的…傳送|从我的…发送|发自 …|發自 …|发送自 …|获取 …版 outlook|获取 outlook …",
        absent="自动答复|自动回复|自動回覆|自動答覆",
    ),
)


DATE_FIELDS = {
    "date", "datum", "data", "fecha", "dato", "päivämäärä", "päiväys", "dátum", "dată", "дата", "датум", "ημερομηνία",
    "tarih", "kuupäev", "datums", "ngày", "tanggal", "วันที่", "दिनांक", "תאריך", "التاريخ", "تاریخ", "日付", "日時",
    "날짜", "日期",
}  # fmt: skip
"""Names of the field `sent` that a list of appointments has too."""
LETTER_SCRIPTS_END = "\u0e00"
"""From Thai on, scripts put no spaces between words."""
VARIES = r"[^,;:!?]{1,70}"


def alternatives(column: str) -> tuple[str, ...]:
    """The phrases of one column in all languages, each once, the longest first."""
    found = {phrase for row in LANGUAGES for phrase in getattr(row, column).split("|") if phrase}
    return tuple(sorted(found, key=lambda phrase: (-len(phrase), phrase)))


def any_of(column: str, varies: str = VARIES) -> str:
    """A pattern for any phrase of a column."""
    return "(?:" + "|".join(_pattern(phrase, varies) for phrase in alternatives(column)) + ")"


def any_word_of(column: str) -> str:
    """A pattern for any phrase of a column that is not a part of a longer word."""
    words = [phrase for phrase in alternatives(column) if phrase[0] < LETTER_SCRIPTS_END]
    others = [phrase for phrase in alternatives(column) if phrase[0] >= LETTER_SCRIPTS_END]
    bounded = rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, words))})(?![^\W\d_])"
    return f"(?:{bounded}|{'|'.join(map(re.escape, others))})"


def _pattern(phrase: str, varies: str) -> str:
    return varies.join(re.escape(piece) for piece in phrase.split("…"))
